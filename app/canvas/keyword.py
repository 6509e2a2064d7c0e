"""The keywords of JSON Schema: which cannot be skipped, and which can."""

from __future__ import annotations

# Every keyword of drafts 3 to 2020-12 that can make an instance invalid, or that pulls in another schema. `format` is
# none: it is an annotation since 2019-09, and the validator here checks no formats.
CONSTRAINING = frozenset(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "extends"),
        *("type", "disallow", "enum", "const"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy"),
        *("minLength", "maxLength", "pattern"),
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "minContains", "maxContains"),
        *("minItems", "maxItems", "uniqueItems"),
        *("properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
        *("required", "minProperties", "maxProperties"),
        *("dependencies", "dependentRequired", "dependentSchemas"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    }
)

# What a property demands of its answer.
ENTROPY_THRESHOLD, MIN_PROBABILITY, ON_UNCERTAIN = "x-entropy-threshold", "x-min-probability", "x-on-uncertain"
DEMANDS = frozenset({ENTROPY_THRESHOLD, MIN_PROBABILITY, ON_UNCERTAIN})

# Every keyword that only says something. Any other is ignored too, as JSON Schema has it, but may be a misspelt one.
ANNOTATIONS = (
    frozenset(
        {
            *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"),
            *("contentEncoding", "contentMediaType", "contentSchema"),
            *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$comment", "$vocabulary"),
            *("$defs", "definitions", "discriminator", "x-option-descriptions"),
        }
    )
    | DEMANDS
)

# Anybody may have keywords that start with "x-"; one that starts so is meant for us, and misspelt if it is not above.
OURS = ("x-opt", "x-entropy", "x-min-", "x-on-", "x-uncertain")

# Where a reference may point.
DEFINITIONS = ("$defs", "definitions")
