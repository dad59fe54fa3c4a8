package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
)

// runBalancer stands before several API servers, as the virtual address of a
// cluster does. By connection, it is one of TCP: a client stays with a server for
// as long as its connection lives. By request, each request goes to the next
// server, so that a client meets every difference between them.
func runBalancer() {
	flags := flag.NewFlagSet("balancer", flag.ExitOnError)
	listen := flags.String("listen", "", "its address")
	servers := flags.String("servers", "", "the API servers' addresses, separated by commas")
	by := flags.String("by", byConnection, byConnection+" or "+byRequest)
	cert := flags.String("cert", "", "the API servers' certificate (by request)")
	key := flags.String("key", "", "its key")
	ca := flags.String("ca", "", "who signed it")
	_ = flags.Parse(os.Args[1:])
	b := &balancer{servers: strings.Split(*servers, ",")}
	l, err := net.Listen("tcp", *listen)
	if err == nil && *by == byRequest {
		err = b.serveRequests(l, *cert, *key, *ca)
	} else if err == nil {
		err = b.serveConnections(l)
	}
	fmt.Fprintln(os.Stderr, "balancer:", err)
	os.Exit(1)
}

const (
	byConnection = "connection"
	byRequest    = "request"
)

type balancer struct {
	servers []string
	turn    atomic.Uint32
}

// dial connects to the next server, or to the one after that if it is down.
func (b *balancer) dial() (net.Conn, error) {
	var all error
	for range b.servers {
		server := b.servers[int(b.turn.Add(1))%len(b.servers)]
		conn, err := net.Dial("tcp", server)
		if err == nil {
			return conn, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

func (b *balancer) serveConnections(l net.Listener) error {
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer client.Close()
			server, err := b.dial()
			if err != nil {
				return // the client finds its connection closed
			}
			defer server.Close()
			go func() {
				_, _ = io.Copy(server, client)
				server.Close()
				client.Close()
			}()
			_, _ = io.Copy(client, server)
		}()
	}
}

// serveRequests proxies HTTP. A server that is down is passed over; one that goes
// away in the middle of an answer takes the answer with it.
func (b *balancer) serveRequests(l net.Listener, cert, key, ca string) error {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	proxies := make([]*httputil.ReverseProxy, len(b.servers))
	for i, server := range b.servers {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		proxies[i] = &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: server}) },
			Transport:     transport,
			FlushInterval: -1, // watches
			ErrorLog:      log.New(io.Discard, "", 0),
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		}
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server that answers before it has read the body (403) would leave the answer hanging in the proxy.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		for range b.servers {
			next := int(b.turn.Add(1)) % len(b.servers)
			probe, err := net.Dial("tcp", b.servers[next])
			if err != nil {
				continue
			}
			probe.Close()
			proxies[next].ServeHTTP(w, r)
			return
		}
		panic(http.ErrAbortHandler)
	})
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // its clients are tests
	return server.ServeTLS(l, cert, key)
}
