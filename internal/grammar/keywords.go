package grammar

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// types is a set of JSON types.
type types uint8

const (
	nullType types = 1 << iota
	boolType
	integerType
	fractionType // numbers that are no integers
	stringType
	arrayType
	objectType

	numberType = integerType | fractionType
	allTypes   = nullType | boolType | numberType | stringType | arrayType | objectType
)

var typeNames = map[string]types{
	"null": nullType, "boolean": boolType, "integer": integerType, "number": numberType,
	"string": stringType, "array": arrayType, "object": objectType,
}

// annotations are keywords that say nothing about which values are valid, or that
// are followed elsewhere.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "example": true, "$schema": true,
	"$id": true, "$comment": true, "deprecated": true, "readOnly": true, "writeOnly": true, "discriminator": true,
	"externalDocs": true, "xml": true, "contentMediaType": true, "contentEncoding": true,
	"$defs": true, "definitions": true,
	"$ref": true, "allOf": true, "anyOf": true, "oneOf": true,
}

// keywords is what a set of schemas says about one value.
type keywords struct {
	at      *jsonNode // for messages
	types   types     // as said by type
	typed   bool      // type was there
	implied types     // the types that the other keywords are about
	enum    []*jsonNode
	limited bool // enum or const was there

	minLength, maxLength int // maxLength -1: none
	patterns, formats    []*jsonNode

	bounds    []bound
	multiples []*jsonNode

	minItems, maxItems int // maxItems -1: none; minItems -1: not said
	arrays             []arrayView
	objects            []objectView
}

// bound is a limit on a number: from below or from above.
type bound struct {
	value     *big.Rat
	below     bool // the value is at least, not at most
	exclusive bool
}

// arrayView is what one schema says about items: those of prefix, then rest, each
// nil where it says nothing.
type arrayView struct {
	prefix []*jsonNode
	rest   *jsonNode
}

// objectView is what one schema says about members.
type objectView struct {
	names      []string
	schemas    []*jsonNode
	required   []string
	additional *jsonNode
}

// gather collects the keywords of schemas that hold together.
func gather(schemas []*jsonNode, root *jsonNode) (*keywords, error) {
	k := &keywords{types: allTypes, maxLength: -1, minItems: -1, maxItems: -1}
	for _, s := range schemas {
		if k.at == nil {
			k.at = s
		}
		var array arrayView
		var object objectView
		for i, key := range s.keys {
			if annotations[key] || strings.HasPrefix(key, "x-") {
				if key == "$id" && s != root {
					return nil, &UnsupportedError{Keyword: key, Path: s.path(), Reason: "only the schema as a whole may have one"}
				}
				continue
			}
			err := k.keyword(key, s.values[i], s, &array, &object)
			if err != nil {
				return nil, err
			}
		}
		if array.prefix != nil || array.rest != nil {
			k.arrays = append(k.arrays, array)
		}
		if object.names != nil || object.required != nil || object.additional != nil {
			k.objects = append(k.objects, object)
		}
	}
	return k, nil
}

// keyword adds one keyword of schema s with value v.
func (k *keywords) keyword(key string, v, s *jsonNode, array *arrayView, object *objectView) error {
	switch key {
	case "type":
		return k.addType(v, s)
	case "nullable":
		return v.expect(jsonBool) // with type
	case "enum":
		if err := v.expect(jsonArray); err != nil {
			return err
		}
		k.addEnum(v.values)
		return nil
	case "const":
		k.addEnum([]*jsonNode{v})
		return nil
	case "minLength", "maxLength", "pattern", "format":
		return k.addString(key, v)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return k.addNumber(key, v)
	case "items", "prefixItems", "additionalItems", "minItems", "maxItems":
		k.implied |= arrayType
		return k.addArray(key, v, s, array)
	case "properties", "required", "additionalProperties":
		k.implied |= objectType
		return addObject(key, v, object)
	}
	return &UnsupportedError{Keyword: key, Path: s.path()}
}

func (k *keywords) addType(v, s *jsonNode) error {
	names := []*jsonNode{v}
	if v.kind == jsonArray {
		names = v.values
	}
	var set types
	for _, n := range names {
		t, ok := typeNames[n.text]
		if n.kind != jsonString || !ok {
			return &SyntaxError{Input: "schema", Where: n.path(), Reason: fmt.Sprintf("%s is no type", n)}
		}
		set |= t
	}
	if n := s.get("nullable"); n != nil && n.truth {
		set |= nullType
	}
	k.types &= set
	k.typed = true
	return nil
}

func (k *keywords) addEnum(values []*jsonNode) {
	if !k.limited {
		k.enum, k.limited = values, true
		return
	}
	both := map[string]bool{}
	for _, v := range values {
		both[v.String()] = true
	}
	k.enum = slices.DeleteFunc(slices.Clone(k.enum), func(n *jsonNode) bool { return !both[n.String()] })
}

func (k *keywords) addString(key string, v *jsonNode) error {
	switch key {
	case "pattern", "format":
		if err := v.expect(jsonString); err != nil {
			return err
		}
		if key == "pattern" {
			k.implied |= stringType
			k.patterns = append(k.patterns, v)
			return nil
		}
		return k.addFormat(v)
	}
	k.implied |= stringType
	n, err := v.count()
	if err != nil {
		return err
	}
	if key == "minLength" {
		k.minLength = max(k.minLength, n)
	} else if k.maxLength < 0 || n < k.maxLength {
		k.maxLength = n
	}
	return nil
}

func (k *keywords) addFormat(v *jsonNode) error {
	if b, ok := numberFormats[v.text]; ok {
		k.implied |= numberType
		k.bounds = append(k.bounds, b()...)
		return nil
	}
	if _, ok := stringFormats[v.text]; !ok {
		return &UnsupportedError{Keyword: "format", Path: v.path(), Reason: fmt.Sprintf("the format %q is not known", v.text)}
	}
	k.implied |= stringType
	k.formats = append(k.formats, v)
	return nil
}

func (k *keywords) addNumber(key string, v *jsonNode) error {
	n, err := v.number()
	if err != nil {
		return err
	}
	k.implied |= numberType
	switch key {
	case "multipleOf":
		if n.Sign() <= 0 {
			return v.wrongType("greater than 0")
		}
		k.multiples = append(k.multiples, v)
	default:
		k.bounds = append(k.bounds, bound{
			value:     n,
			below:     strings.HasSuffix(key, "inimum"),
			exclusive: strings.HasPrefix(key, "exclusive"),
		})
	}
	return nil
}

func (k *keywords) addArray(key string, v, s *jsonNode, view *arrayView) error {
	switch key {
	case "minItems", "maxItems":
		n, err := v.count()
		if err != nil {
			return err
		}
		if key == "minItems" {
			k.minItems = max(k.minItems, n)
		} else if k.maxItems < 0 || n < k.maxItems {
			k.maxItems = n
		}
		return nil
	case "items":
		if v.kind != jsonArray {
			view.rest = v
			return nil
		}
		// draft 7's spelling of prefixItems
	case "additionalItems":
		if items := s.get("items"); items != nil && items.kind == jsonArray {
			view.rest = v
		}
		return nil // it says nothing beside items for all
	}
	if err := v.expect(jsonArray); err != nil {
		return err
	}
	view.prefix = v.values
	return nil
}

func addObject(key string, v *jsonNode, view *objectView) error {
	switch key {
	case "properties":
		if err := v.expect(jsonObject); err != nil {
			return err
		}
		view.names, view.schemas = append([]string{}, v.keys...), v.values
	case "required":
		names, err := v.strings()
		if err != nil {
			return err
		}
		view.required = append([]string{}, names...)
	case "additionalProperties":
		view.additional = v
	}
	return nil
}
