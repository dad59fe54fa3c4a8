package documents

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// resultJSON writes what JSON does, an object at a time: the text of many objects is
// never in memory.
func resultJSON(w io.Writer, r *report.Result) error {
	objects, rest := r.Objects, *r
	rest.Objects = []*report.ObjectResult{}
	var text bytes.Buffer
	if err := wording.JSON(&text, &rest); err != nil {
		return err
	}
	// A newline in a value is escaped.
	before, after, _ := strings.Cut(text.String(), "\n  \"objects\": []")
	out := bufio.NewWriter(w) // it keeps its first error
	fmt.Fprintf(out, "%s\n  \"objects\": [", before)
	encoder := wording.NewEncoder(&text)
	encoder.SetIndent("    ", "  ")
	end := "]"
	for i, o := range objects {
		text.Reset()
		if err := encoder.Encode(o); err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, "\n    %s", bytes.TrimSuffix(text.Bytes(), []byte("\n")))
		end = "\n  ]"
	}
	fmt.Fprint(out, end, after)
	return out.Flush()
}
