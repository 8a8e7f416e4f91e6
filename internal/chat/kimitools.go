package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// typescriptTools declares tools in the style of TypeScript, as Kimi-K2.5 is told of them: a namespace with a type for each function.
// Members of schemas are taken in sorted order. ok is false if a schema is one that the style cannot say, or there is no function.
// Source of the rules: tool_declaration_ts.py of moonshotai/Kimi-K2.5.
func typescriptTools(tools []Tool) (text string, ok bool) {
	var functions []string
	for _, t := range tools {
		v, err := decodeJSON(t)
		if err != nil {
			return "", false
		}
		o, isObject := v.(*object)
		if !isObject {
			return "", false
		}
		f, wrapped := o.get("function").(*object)
		if kind, _ := stringField(o, "type"); kind != "function" && (wrapped || kind != "") {
			continue
		}
		if !wrapped {
			f = o
		}
		s, err := typescriptFunction(f)
		if err != nil {
			return "", false
		}
		functions = append(functions, s)
	}
	if functions == nil {
		return "", false
	}
	return "# Tools\n\n## functions\nnamespace functions {\n" + strings.Join(functions, "\n") + "\n}\n", true
}

// typescriptFunction declares one function: interfaces that its parameters refer to, its description, its type.
func typescriptFunction(f *object) (string, error) {
	name, err := stringField(f, "name")
	if err != nil {
		return "", err
	}
	if name == "" {
		return "", errors.New("has no name")
	}
	description, err := stringField(f, "description")
	if err != nil {
		return "", err
	}
	root, ok := f.get("parameters").(*object)
	if !ok && f.get("parameters") != nil {
		return "", errors.New("parameters are not an object")
	}
	w := &typescript{defs: map[string]*object{}}
	params, err := w.object(root, "")
	if err != nil {
		return "", err
	}
	items, err := w.interfaces(root)
	if err != nil {
		return "", err
	}
	if description != "" {
		items = append(items, strings.TrimSuffix(comment(description, ""), "\n"))
	}
	if w.recursive {
		params = rootInterface
	}
	return strings.Join(append(items, "type "+name+" = (_: "+params+") => any;"), "\n"), nil
}

// rootInterface is the name of the parameters where they refer to themselves.
const rootInterface = "parameters"

// tsIndent is one level of indentation.
const tsIndent = "  "

// typescript writes the types of one function.
type typescript struct {
	defs      map[string]*object // $defs by name
	recursive bool               // "#" was referred to
	depth     int
}

// interfaces declares the root, if something refers to it, and the $defs.
func (w *typescript) interfaces(root *object) ([]string, error) {
	var items []string
	for _, name := range sortedNames(w.defs) {
		def := w.defs[name]
		t, err := w.typeOf(def, "")
		if err != nil {
			return nil, err
		}
		description, err := stringField(def, "description")
		if err != nil {
			return nil, err
		}
		if description != "" {
			t = comment(description, "") + "interface " + name + " " + t
		} else {
			t = "interface " + name + " " + t
		}
		items = append(items, t)
	}
	if !w.recursive {
		return items, nil
	}
	fields, _, err := w.fields(root, "")
	if err != nil {
		return nil, err
	}
	body := strings.Join(fields, ",\n")
	if body != "" {
		body = "\n" + body + "\n"
	}
	return append([]string{"interface " + rootInterface + " {" + body + "}"}, items...), nil
}

func sortedNames(m map[string]*object) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// typeOf writes the type of a schema whose own line is indented by indent.
func (w *typescript) typeOf(schema any, indent string) (string, error) {
	if w.depth++; w.depth > maxDepth {
		return "", fmt.Errorf("nesting deeper than %d", maxDepth)
	}
	defer func() { w.depth-- }()
	if b, ok := schema.(bool); ok {
		if b {
			return "any", nil
		}
		return "null", nil
	}
	o, ok := schema.(*object)
	if !ok {
		return "", fmt.Errorf("schema is %s", jsonType(schema))
	}
	switch {
	case o.has("$ref"):
		return w.reference(o)
	case o.has("anyOf"):
		list, _ := o.get("anyOf").([]any)
		return w.union(list, func(e any) (string, error) { return w.typeOf(e, indent) })
	case o.has("enum"):
		list, _ := o.get("enum").([]any)
		return w.union(list, func(e any) (string, error) {
			if s, ok := e.(string); ok {
				return `"` + s + `"`, nil
			}
			return pythonText(e)
		})
	case o.has("type"):
		return w.named(o, indent)
	case len(o.keys) == 0:
		return "any", nil
	}
	return "", errors.New("schema without a type")
}

// union joins alternatives.
func (w *typescript) union(list []any, one func(any) (string, error)) (string, error) {
	if list == nil {
		return "", errors.New("alternatives are not a list")
	}
	texts := make([]string, len(list))
	for i, e := range list {
		var err error
		if texts[i], err = one(e); err != nil {
			return "", err
		}
	}
	return strings.Join(texts, " | "), nil
}

// reference names what a schema refers to.
func (w *typescript) reference(o *object) (string, error) {
	ref, err := stringField(o, "$ref")
	if err != nil {
		return "", err
	}
	if ref == "#" {
		w.recursive = true
		return rootInterface, nil
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if name = name[strings.LastIndexByte(name, '/')+1:]; !ok || w.defs[name] == nil {
		return "", fmt.Errorf("reference %q", ref)
	}
	return name, nil
}

// unionTypes are the types in a list of types.
var unionTypes = map[string]string{
	"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null", "object": "{}", "array": "Array<any>",
}

// named writes a schema by its type.
func (w *typescript) named(o *object, indent string) (string, error) {
	switch t := o.get("type").(type) {
	case []any:
		return w.union(t, func(e any) (string, error) {
			s, _ := e.(string)
			if unionTypes[s] == "" {
				return "", fmt.Errorf("type %v", e)
			}
			return unionTypes[s], nil
		})
	case string:
		switch t {
		case "object":
			return w.object(o, indent)
		case "array":
			return w.array(o, indent)
		case "integer":
			return "number", nil
		}
		return t, nil
	}
	return "", errors.New("type is not a string")
}

// array writes a list type; with comments on its items they take lines of their own.
func (w *typescript) array(o *object, indent string) (string, error) {
	items := o.get("items")
	if list, ok := items.(*object); items == nil || items == false || ok && len(list.keys) == 0 {
		return "Array<any>", nil
	}
	inner := indent + tsIndent
	docs, err := docs(items, inner)
	if err != nil {
		return "", err
	}
	if docs == "" {
		t, err := w.typeOf(items, indent)
		return "Array<" + t + ">", err
	}
	t, err := w.typeOf(items, inner)
	return "Array<\n" + docs + inner + t + "\n" + indent + ">", err
}

// object writes an object type: the required members and then the others.
func (w *typescript) object(o *object, indent string) (string, error) {
	if defs, ok := o.get("$defs").(*object); ok {
		for _, name := range defs.keys {
			if def, ok := defs.values[name].(*object); ok {
				w.defs[name] = def
			}
		}
	}
	fields, optional, err := w.fields(o, indent)
	if err != nil {
		return "", err
	}
	var ordered []string
	for _, want := range []bool{false, true} {
		for i, f := range fields {
			if optional[i] == want {
				ordered = append(ordered, f)
			}
		}
	}
	if more := o.get("additionalProperties"); more != nil {
		t := "never"
		if more != false {
			if t, err = w.typeOf(more, indent+tsIndent); err != nil {
				return "", err
			}
		}
		ordered = append(ordered, indent+tsIndent+"[k: string]: "+t)
	}
	if ordered == nil {
		return "{}", nil
	}
	return "{\n" + strings.Join(ordered, ",\n") + "\n" + indent + "}", nil
}

// fields writes the members of an object, by name, and says which are optional.
func (w *typescript) fields(o *object, indent string) (fields []string, optional []bool, err error) {
	properties, ok := o.get("properties").(*object)
	if !ok {
		return nil, nil, nil
	}
	required, _ := o.get("required").([]any)
	inner := indent + tsIndent
	for _, name := range slices.Sorted(slices.Values(properties.keys)) {
		schema := properties.values[name]
		text, err := docs(schema, inner)
		if err != nil {
			return nil, nil, err
		}
		opt := !slices.Contains(required, any(name))
		mark := ": "
		if opt {
			mark = "?: "
		}
		if o, ok := schema.(*object); ok && o.get("default") != nil {
			def, err := defaultText(o.get("default"))
			if err != nil {
				return nil, nil, err
			}
			text += inner + "// Default: " + def + "\n"
		}
		t, err := w.typeOf(schema, inner)
		if err != nil {
			return nil, nil, err
		}
		fields = append(fields, text+inner+name+mark+t)
		optional = append(optional, opt)
	}
	return fields, optional, nil
}
