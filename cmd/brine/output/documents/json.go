package documents

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"brine/bundle/report"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// jsonPrinter writes the Result, one indented document, to Out when the run is
// over, and nothing else; progress goes to Err as text.
type jsonPrinter struct {
	mu       sync.Mutex
	out      *wording.Stream
	progress *text.Printer
	over     bool
}

// NewJSON is the printer of -o json.
func NewJSON(o wording.Options) wording.Printer {
	return &jsonPrinter{out: &wording.Stream{W: o.Out}, progress: text.NewProgress(o)}
}

func (p *jsonPrinter) Event(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.Event(e)
	end, ok := e.Payload.(report.Finished)
	if !ok || end.Result == nil || p.over {
		return
	}
	p.over = true
	if err := resultJSON(p.out, wording.FillLists(end.Result)); err != nil && p.out.Err == nil {
		p.out.Err = err
	}
}

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

func (p *jsonPrinter) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.progress.Close()
	if !p.over {
		err = errors.Join(errors.New("the run ended without a result"), err)
	}
	return errors.Join(p.out.Err, err)
}
