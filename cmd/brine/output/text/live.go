package text

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// The block at the bottom of a terminal that shows a run while it goes on.

// What the live view writes to a terminal (ECMA-48, and DEC's private modes; 2026
// is the synchronized update of contour's "terminal synchronized output", which
// terminals that do not know it ignore).
const (
	beginFrame = "\x1b[?2026h"
	endFrame   = "\x1b[?2026l"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseRight = "\x1b[K"
	eraseBelow = "\x1b[J"
)

// tick is the least time between two frames.
const tick = 100 * time.Millisecond

// live is a block at the bottom of a terminal that is drawn again and again;
// what is written to it scrolls by above the block.
//
// Between frames the cursor rests on the block's first cell. So a terminal that
// was resized, whether it wraps lines again or cuts them off, needs nothing but
// "erase below", and lines that others write overwrite the block.
type live struct {
	mu    sync.Mutex
	w     io.Writer
	o     wording.Options
	state liveState
	lines bytes.Buffer // permanent lines that are not drawn yet
	last  string       // the block as it stands on the terminal
	size  [2]int
	drawn bool
	err   error

	at   time.Duration // Elapsed of the last event
	seen time.Time     // when it came

	quit chan struct{}
	done chan struct{}
}

// newLive draws nothing before run runs.
func newLive(o wording.Options) *live {
	l := &live{w: o.Err, o: o, seen: o.Now(), quit: make(chan struct{}), done: make(chan struct{})}
	l.state.paint = wording.Paint(o.ErrColor)
	return l
}

// run draws until stop. The size of the terminal is asked for every frame, so a
// resize needs no signal.
func (l *live) run() {
	defer close(l.done)
	t := time.NewTicker(tick)
	defer t.Stop()
	suspended, ignore := suspensions()
	defer ignore()
	for {
		select {
		case <-l.quit:
			return
		case <-suspended:
			l.mu.Lock()
			l.clear()
			suspend()
			l.mu.Unlock()
		case <-t.C:
			l.mu.Lock()
			l.draw()
			l.mu.Unlock()
		}
	}
}

// Write puts whole lines above the block, with the next frame.
func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, l.err
	}
	if l.stopped() {
		return l.w.Write(p)
	}
	return l.lines.Write(p)
}

func (l *live) update(e report.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at, l.seen = e.Elapsed, l.o.Now()
	l.state.update(e)
}

// stop draws the last lines, removes the block and gives the cursor back.
func (l *live) stop() {
	l.mu.Lock()
	if l.stopped() {
		l.mu.Unlock()
		return
	}
	close(l.quit)
	l.mu.Unlock()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
}

// clear removes the block and shows the cursor; the next frame draws it again.
func (l *live) clear() {
	text := l.lines.String()
	if l.drawn {
		text = beginFrame + "\r" + eraseBelow + text + showCursor + endFrame
	}
	l.lines.Reset()
	l.drawn, l.last = false, ""
	l.write(text)
}

func (l *live) stopped() bool {
	select {
	case <-l.quit:
		return true
	default:
		return false
	}
}

// draw writes one frame, all in one write, unless nothing has changed.
func (l *live) draw() {
	if len(l.state.rates) == 0 { // the run has not begun: no block yet
		l.write(l.lines.String())
		l.lines.Reset()
		return
	}
	size := [2]int{ask(l.o.Width, 80), ask(l.o.Height, 24)}
	rows := l.state.frame(size[0], size[1], l.at+l.o.Now().Sub(l.seen))
	block := strings.Join(rows, eraseRight+"\r\n") + eraseRight
	if l.drawn && block == l.last && size == l.size && l.lines.Len() == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(beginFrame + hideCursor + "\r")
	if l.lines.Len() > 0 {
		b.WriteString(eraseBelow)
	}
	b.WriteString(l.lines.String())
	b.WriteString(block + eraseBelow + "\r")
	if len(rows) > 1 {
		b.WriteString("\x1b[" + strconv.Itoa(len(rows)-1) + "A")
	}
	b.WriteString(endFrame)
	l.lines.Reset()
	l.drawn, l.last, l.size = true, block, size
	l.write(b.String())
}

func (l *live) write(text string) {
	if text == "" || l.err != nil {
		return
	}
	_, l.err = io.WriteString(l.w, text)
}

func ask(f func() int, fallback int) int {
	if f == nil {
		return fallback
	}
	if n := f(); n > 0 {
		return n
	}
	return fallback
}
