package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
)

// appendString appends a string as GGUF stores it.
func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// appendValue appends the type and the bytes of v, a value that [Writer.Set] takes.
func appendValue(b []byte, v any) ([]byte, error) {
	if t, ok := scalarType(v); ok {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
		return appendScalar(b, v), nil
	}
	switch s := v.(type) {
	case []uint8:
		return appendArray(b, s), nil
	case []int8:
		return appendArray(b, s), nil
	case []uint16:
		return appendArray(b, s), nil
	case []int16:
		return appendArray(b, s), nil
	case []uint32:
		return appendArray(b, s), nil
	case []int32:
		return appendArray(b, s), nil
	case []uint64:
		return appendArray(b, s), nil
	case []int64:
		return appendArray(b, s), nil
	case []float32:
		return appendArray(b, s), nil
	case []float64:
		return appendArray(b, s), nil
	case []bool:
		return appendArray(b, s), nil
	case []string:
		return appendArray(b, s), nil
	}
	return b, fmt.Errorf("gguf holds no value of Go type %T", v)
}

// appendArray appends an array's type, element type, length and elements.
func appendArray[T any](b []byte, s []T) []byte {
	var zero T
	t, _ := scalarType(zero) // known: appendValue lists the types
	b = binary.LittleEndian.AppendUint32(b, uint32(vArray))
	b = binary.LittleEndian.AppendUint32(b, uint32(t))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	for _, v := range s {
		b = appendScalar(b, v)
	}
	return b
}

// scalarType returns the type number of a value that is no array.
func scalarType(v any) (valueType, bool) {
	switch v.(type) {
	case uint8:
		return vUint8, true
	case int8:
		return vInt8, true
	case uint16:
		return vUint16, true
	case int16:
		return vInt16, true
	case uint32:
		return vUint32, true
	case int32:
		return vInt32, true
	case uint64:
		return vUint64, true
	case int64:
		return vInt64, true
	case float32:
		return vFloat32, true
	case float64:
		return vFloat64, true
	case bool:
		return vBool, true
	case string:
		return vString, true
	}
	return 0, false
}

// appendScalar appends the bytes of a value for which scalarType has a number.
func appendScalar(b []byte, v any) []byte {
	le := binary.LittleEndian
	switch x := v.(type) {
	case uint8:
		return append(b, x)
	case int8:
		return append(b, uint8(x))
	case uint16:
		return le.AppendUint16(b, x)
	case int16:
		return le.AppendUint16(b, uint16(x))
	case uint32:
		return le.AppendUint32(b, x)
	case int32:
		return le.AppendUint32(b, uint32(x))
	case uint64:
		return le.AppendUint64(b, x)
	case int64:
		return le.AppendUint64(b, uint64(x))
	case float32:
		return le.AppendUint32(b, math.Float32bits(x))
	case float64:
		return le.AppendUint64(b, math.Float64bits(x))
	case bool:
		if x {
			return append(b, 1)
		}
		return append(b, 0)
	case string:
		return appendString(b, x)
	}
	return b
}
