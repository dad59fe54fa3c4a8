package main

import (
	"errors"
	"io"
	"net"
	"time"
)

// delay forwards TCP connections to a server and holds each byte back for half
// a round trip, both ways, without reordering and without limiting how much is
// under way: a long wire, not a slow one.
func delay(to string, roundTrip time.Duration) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			go hold(near, far, roundTrip/2)
			go hold(far, near, roundTrip/2)
		}
	}()
	return l, nil
}

// packet is what was read at a time, and when it may go on.
type packet struct {
	bytes []byte
	due   time.Time
}

func hold(from, to net.Conn, by time.Duration) {
	wire := make(chan packet, 4096)
	go func() {
		defer to.Close()
		defer from.Close()
		for p := range wire {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				break
			}
		}
		for range wire { // let the reader end
		}
	}()
	for {
		buffer := make([]byte, 32<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			wire <- packet{buffer[:n], time.Now().Add(by)}
		}
		if err != nil {
			close(wire)
			if !errors.Is(err, io.EOF) {
				from.Close()
			}
			return
		}
	}
}
