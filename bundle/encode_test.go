package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

func TestEncode(t *testing.T) {
	texts := map[string]any{}
	for c := range 0x300 {
		texts[fmt.Sprintf("%c%d", c, c)] = fmt.Sprintf("a%cb", c)
	}
	for _, value := range []any{
		nil, true, false, int64(math.MinInt64), int64(0), 7, 1.5, 1e21, 1e-7, 100.0, "", "x", "<&>", "\u2028é\xff", map[string]any(nil), []any(nil), map[string]any{}, []any{},
		[]any{"a", []any{}, nil, map[string]any{"b": []any{int64(1)}}}, []string{"a<"}, map[string]string{"b": "c"}, json.Number("12"), texts,
		map[string]any{"z": 1.0, "a": map[string]any{"": nil, "~": "\n", "_": map[string]any{}}, "M": []any{true}},
	} {
		want, _ := json.Marshal(value)
		if got, err := Encode(value); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%v is %s, %v, not %s", value, got, err, want)
		}
	}
	for _, value := range []any{math.NaN(), map[string]any{"a": []any{func() {}}}} {
		if got, err := Encode(value); err == nil {
			t.Errorf("%s", got)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"mode": "fast", "settings.ini": "number = 1\nlevel = info\n"},
		"metadata": map[string]any{"name": "object-1", "namespace": "bench-1", "labels": map[string]any{"app": "bench", "part": "1"}},
	}
	for name, encode := range map[string]func(any) ([]byte, error){"bundle": Encode, "encoding/json": json.Marshal} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
