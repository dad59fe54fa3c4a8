package bundle

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Encode is a JSON value as encoding/json writes it, in half of its time: digests of it are kept.
func Encode(value any) ([]byte, error) { return appendJSON(nil, value) }

func appendJSON(text []byte, value any) (_ []byte, err error) {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			break
		}
		var few [16]string
		keys := few[:0]
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		text = append(text, '{')
		for i, key := range keys {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(appendText(text, key), ':')
			if text, err = appendJSON(text, v[key]); err != nil {
				return nil, err
			}
		}
		return append(text, '}'), nil
	case []any:
		if v == nil {
			break
		}
		text = append(text, '[')
		for i := range v {
			if i > 0 {
				text = append(text, ',')
			}
			if text, err = appendJSON(text, v[i]); err != nil {
				return nil, err
			}
		}
		return append(text, ']'), nil
	case string:
		return appendText(text, v), nil
	case int64:
		return strconv.AppendInt(text, v, 10), nil
	case bool:
		return strconv.AppendBool(text, v), nil
	}
	other, err := json.Marshal(value)
	return append(text, other...), err
}

func appendText(text []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '"', c == '\\', c == '<', c == '>', c == '&', c >= 0x7f:
			quoted, _ := json.Marshal(s) //nolint:errchkjson // a string
			return append(text, quoted...)
		}
	}
	text = append(text, '"')
	text = append(text, s...)
	return append(text, '"')
}
