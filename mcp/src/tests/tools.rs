//! The tools as clients see them.

use serde_json::Value;

use crate::tools::ToolName;

#[test]
fn every_tool_has_a_description_a_schema_and_hints() {
    for tool in ToolName::ALL {
        let described = tool.describe();
        assert_eq!(ToolName::named(&described.name), Some(tool));
        assert!(described.description.is_some_and(|text| text.len() > 40));
        let schema = &described.input_schema;
        assert_eq!(schema["type"], "object", "{tool:?}");
        let properties = schema["properties"].as_object().unwrap();
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{tool:?}: {name}");
        }
        for required in schema["required"].as_array().unwrap() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{tool:?}");
        }
        let hints = described.annotations.unwrap();
        let reads = !matches!(tool, ToolName::Due | ToolName::Verdict);
        assert_eq!(hints.read_only_hint, Some(reads), "{tool:?}");
        assert_eq!(hints.destructive_hint, Some(false), "{tool:?}");
    }
    assert_eq!(ToolName::named("delete_everything"), None);
}

#[test]
fn the_verdict_says_when_it_may_be_used() {
    let description = ToolName::Verdict.describe().description.unwrap();
    for word in ["due", "once", "inconclusive", "Never"] {
        assert!(description.contains(word), "{word}");
    }
}

#[test]
fn what_due_hands_out_is_valid_for_query() {
    let schema = Value::Object(ToolName::Query.describe().input_schema.as_ref().clone());
    let members = [
        "bucketId",
        "filters",
        "aggregation",
        "groupBy",
        "fill",
        "timezone",
        "downsampling",
        "limit",
        "sort",
    ];
    for member in members {
        assert!(schema["properties"][member].is_object(), "{member}");
    }
    for filter in ["dataSourceIds", "startTime", "endTime", "fields", "dimensions"] {
        assert!(
            schema["properties"]["filters"]["properties"][filter].is_object(),
            "{filter}"
        );
    }
    assert_eq!(schema["properties"]["limit"]["maximum"], 10_000);
}
