package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// rawTimes is what raw prints: seconds until the last answer, and until all is
// gone, for deletes.
type rawTimes struct {
	Answered float64 `json:"answered"`
	Gone     float64 `json:"gone,omitempty"`
}

// raw is the floor: the requests of a bundle, so many at a time, and nothing
// else: nothing read before, nothing written down, nothing waited for.
func raw(args []string, out io.Writer) error {
	f := flag.NewFlagSet("raw", flag.ContinueOnError)
	kubeconfig := f.String("kubeconfig", "", "")
	file := f.String("requests", "", "")
	parallel := f.Int("parallel", 16, "")
	if len(args) == 0 {
		return errors.New("what? apply, dry-run, get, list or delete")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	s, err := connect(*kubeconfig)
	if err != nil {
		return err
	}
	namespaces, others, err := readRequests(*file)
	if err != nil {
		return err
	}
	var times rawTimes
	begin := time.Now()
	switch args[0] {
	case "apply":
		err = errors.Join(s.each(*parallel, namespaces, apply("")), s.each(*parallel, others, apply("")))
	case "dry-run":
		err = errors.Join(s.each(*parallel, namespaces, apply("&dryRun=All")), s.each(*parallel, others, apply("&dryRun=All")))
	case "get":
		err = s.each(*parallel, append(namespaces, others...), get)
	case "list":
		err = s.each(*parallel, collections(namespaces, others), get)
	case "delete":
		err = errors.Join(s.each(*parallel, others, remove), s.each(*parallel, namespaces, remove))
		times.Answered = time.Since(begin).Seconds()
		if err == nil {
			err = s.gone()
		}
		times.Gone = time.Since(begin).Seconds()
	default:
		return fmt.Errorf("%s: it is apply, dry-run, get, list or delete", args[0])
	}
	if err != nil {
		return err
	}
	if times.Answered == 0 {
		times.Answered = time.Since(begin).Seconds()
	}
	return json.NewEncoder(out).Encode(times)
}

func readRequests(path string) (namespaces, others []request, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReader(file))
	for {
		var r request
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return namespaces, others, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		if strings.Count(r.Path, "/") == 4 {
			namespaces = append(namespaces, r)
		} else {
			others = append(others, r)
		}
	}
}

// ask makes the HTTP request for one object.
type ask func(s *server, r request) (*http.Request, error)

// each sends a request for every object, so many at a time.
func (s *server) each(parallel int, requests []request, ask ask) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	work := make(chan request)
	var done sync.WaitGroup
	for range parallel {
		done.Go(func() {
			for r := range work {
				if err := s.send(ctx, r, ask); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, r := range requests {
		work <- r
	}
	close(work)
	done.Wait()
	return context.Cause(ctx)
}

func (s *server) send(ctx context.Context, r request, ask ask) error {
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		q, err := ask(s, r)
		if err != nil {
			return err
		}
		q.Header.Set("Authorization", "Bearer "+s.token)
		answer, err := s.client.Do(q.WithContext(ctx))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
		switch {
		case answer.StatusCode == http.StatusTooManyRequests:
			time.Sleep(time.Second)
		case answer.StatusCode >= http.StatusBadRequest && answer.StatusCode != http.StatusNotFound:
			return fmt.Errorf("%s %s: %s: %s", q.Method, r.Path, answer.Status, text)
		default:
			return nil
		}
	}
}

func apply(option string) ask {
	return func(s *server, r request) (*http.Request, error) {
		q, err := http.NewRequest(http.MethodPatch, s.url+r.Path+"?fieldManager=raw&force=true"+option, bytes.NewReader(r.Body))
		if err == nil {
			q.Header.Set("Content-Type", "application/apply-patch+yaml")
		}
		return q, err
	}
}

func remove(s *server, r request) (*http.Request, error) {
	return http.NewRequest(http.MethodDelete, s.url+r.Path, nil)
}

func get(s *server, r request) (*http.Request, error) {
	return http.NewRequest(http.MethodGet, s.url+r.Path, nil)
}

// collections are the kinds of the requests, everywhere.
func collections(namespaces, others []request) []request {
	kinds := map[string]bool{}
	for range namespaces {
		kinds["/api/v1/namespaces"] = true
	}
	for _, r := range others {
		head, tail, _ := strings.Cut(r.Path, "/namespaces/")
		kinds[head+"/"+strings.Split(tail, "/")[1]] = true
	}
	var lists []request
	for kind := range kinds {
		lists = append(lists, request{Path: kind})
	}
	return lists
}

// gone waits until the namespaces are: their controller empties them.
func (s *server) gone() error {
	for {
		q, err := http.NewRequest(http.MethodGet, s.url+"/api/v1/namespaces?labelSelector=bench", nil)
		if err != nil {
			return err
		}
		q.Header.Set("Authorization", "Bearer "+s.token)
		answer, err := s.client.Do(q)
		if err != nil {
			return err
		}
		var found struct {
			Items []any `json:"items"`
		}
		err = json.NewDecoder(answer.Body).Decode(&found)
		answer.Body.Close()
		if err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}
