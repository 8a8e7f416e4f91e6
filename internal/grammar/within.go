package grammar

import "fmt"

// FromJSONSchemaWithin compiles the JSON texts that are valid against frame and
// whose member key, which frame declares, is valid against schema too; with an
// empty key the whole text is. References of schema are to schema itself, so that
// it can come from elsewhere, as the parameters of a tool do. Errors are those of
// FromJSONSchema, with places in schema.
func FromJSONSchemaWithin(frame []byte, key string, schema []byte) (*Grammar, error) {
	outer, err := parseSchemaText(frame)
	if err != nil {
		return nil, fmt.Errorf("the frame: %w", err)
	}
	inner, err := (&schemaReader{count: maxSchemaBytes}).read(schema) // ids that no node of the frame has
	if err != nil {
		return nil, err
	}
	if key == "" {
		return compileSchemas(inner, outer, inner)
	}
	member := outer.get("properties")
	if member != nil {
		member = member.get(key)
	}
	if member == nil || member.kind != jsonObject {
		return nil, fmt.Errorf("the frame does not declare %q", key)
	}
	member.keys = append(member.keys, "allOf")
	member.values = append(member.values, &jsonNode{id: -1, parent: member, key: "allOf", kind: jsonArray, values: []*jsonNode{inner}})
	return compileSchemas(inner, outer)
}
