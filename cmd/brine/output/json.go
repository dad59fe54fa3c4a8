package output

import (
	"errors"
	"sync"

	"brine/bundle/report"
)

// jsonPrinter writes the Result, one indented document, to Out when the run is
// over, and nothing else; progress goes to Err as text.
type jsonPrinter struct {
	mu       sync.Mutex
	out      *stream
	progress *text
	over     bool
}

func newJSON(o Options) *jsonPrinter {
	return &jsonPrinter{out: &stream{w: o.Out}, progress: newProgress(o)}
}

// newProgress is text for Err alone, for formats whose Out belongs to a machine.
func newProgress(o Options) *text {
	o.Out, o.Color, o.Terminal = o.Err, o.ErrColor, false
	t := newText(o)
	t.brief = true
	return t
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
	if err := JSON(p.out, complete(end.Result)); err != nil && p.out.err == nil {
		p.out.err = err
	}
}

func (p *jsonPrinter) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.progress.Close()
	if !p.over {
		err = errors.Join(errors.New("the run ended without a result"), err)
	}
	return errors.Join(p.out.err, err)
}
