// Package takeover decides how objects are taken over from the tools and field managers
// that had them before: which tool an object belongs to, what is removed so that the
// tool lets go of it, and which fields change hands. It does no I/O:
// package helm below it reads and marks what Helm stores.
package takeover

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Tool is another tool that an object belongs to by its ownership metadata.
type Tool struct {
	// Text names it, like "Helm release web in namespace shop".
	Text string
	// Token is how it is named to be taken over from, like "helm:shop/web"; "" where
	// it cannot be made to let go.
	Token string
	// Manager is its field manager.
	Manager string
	// Annotations and Labels are the ownership metadata: the tool lets go of an object
	// that does not carry it.
	Annotations, Labels []string
}

// managedBy is a label that more than one tool sets.
const managedBy = "app.kubernetes.io/managed-by"

// ToolOf is the tool that a live object belongs to; the zero Tool if there is none.
func ToolOf(live *unstructured.Unstructured) Tool {
	return append(toolsOf(live), Tool{})[0]
}

// tools are the prefixes of tools to take over from; all other names are of field
// managers.
var tools = []string{helmPrefix, argoPrefix, fluxPrefix, kappPrefix}

// Qualified is what is taken over from, with the namespace of releases and
// Kustomizations that name none.
func Qualified(from []string, namespace string) []string {
	var all []string
	for _, name := range from {
		for _, prefix := range []string{helmPrefix, fluxPrefix} {
			if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.Contains(rest, "/") {
				name = prefix + namespace + "/" + rest
			}
		}
		all = append(all, name)
	}
	return all
}

// TakeOver is what is taken over of one object.
type TakeOver struct {
	Managers []string // whose fields are taken
	Tools    []Tool   // that let go
}

// Of is what is taken over of a live object from the field managers and tools.
func Of(live *unstructured.Unstructured, from []string) TakeOver {
	var t TakeOver
	if len(from) == 0 {
		return t
	}
	for _, name := range from {
		if !slices.ContainsFunc(tools, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			t.Managers = append(t.Managers, name)
		}
	}
	for _, tool := range toolsOf(live) {
		if tool.named(from) {
			t.Tools, t.Managers = append(t.Tools, tool), append(t.Managers, tool.Manager)
		}
	}
	return t
}

// Needed says whether there is anything to take over.
func (t TakeOver) Needed(live *unstructured.Unstructured) bool {
	return len(t.Tools) > 0 || Manages(live, t.Managers)
}

// Silently says whether an object is adopted from a tool without that this was
// asked for, and names the tool.
func Silently(live *unstructured.Unstructured, from []string) (tool string, ok bool) {
	for _, t := range toolsOf(live) {
		if !t.named(from) {
			return t.Text, true
		}
	}
	return "", false
}

func (t Tool) named(from []string) bool { return t.Token != "" && slices.Contains(from, t.Token) }
