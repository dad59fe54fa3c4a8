package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Answers, and the JSON of objects in them.

// text is the JSON of an object: alone, in a list, and of its metadata.
type text struct {
	of               *unstructured.Unstructured
	json, item, meta []byte
}

// encode is the JSON of an object that is at a place, or was, or would be.
func (s *Server) encode(p Place, u *unstructured.Unstructured) []byte {
	known := s.texts[p]
	if known == nil || known.of != u {
		encoded, _ := json.Marshal(u.Object)
		if known = (&text{of: u, json: encoded}); s.Objects[p] == u {
			s.texts[p] = known
		}
	}
	return known.json
}

// encodeItem is the JSON of an object in a list, or of its metadata alone.
func (s *Server) encodeItem(k Kind, p Place, u *unstructured.Unstructured, metadata bool) []byte {
	u = k.as(u)
	alone := s.encode(p, u)
	known := s.texts[p]
	if known == nil || known.of != u { // it is not stored any more
		known = &text{of: u, json: alone}
	}
	switch {
	case metadata:
		if known.meta == nil {
			known.meta, _ = json.Marshal(map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": u.Object["metadata"]})
		}
		return known.meta
	case k.isCustom():
		return alone
	}
	if known.item == nil { // of them the list says it
		item := maps.Clone(u.Object)
		delete(item, "apiVersion")
		delete(item, "kind")
		known.item, _ = json.Marshal(item)
	}
	return known.item
}

// Answer makes a response.
func Answer(r *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": []string{contentType}}, Body: body, Request: r, ContentLength: -1,
	}
}

func answerJSON(r *http.Request, code int, v any) *http.Response {
	text, _ := json.Marshal(v)
	return answerText(r, code, text)
}

func answerText(r *http.Request, code int, text []byte) *http.Response {
	return Answer(r, code, "application/json", io.NopCloser(bytes.NewReader(text)))
}

// AnswerError makes the response that says an error.
func AnswerError(r *http.Request, err error) *http.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	if status.Details != nil { // conflicts come in the order of a map
		slices.SortFunc(status.Details.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
		})
	}
	status.APIVersion, status.Kind = "v1", "Status"
	return answerJSON(r, int(status.Code), status)
}

func notFound(k Kind, name string) error { return apierrors.NewNotFound(k.resource(), name) }

func badRequest(message string) error { return apierrors.NewBadRequest(message) }
