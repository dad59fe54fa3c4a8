package validate

import (
	_ "embed" // the removed kinds
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/deprecation"
	"k8s.io/client-go/kubernetes/scheme"

	"brine/bundle/validate/published"
)

// Which versions of built-in kinds the versions of Kubernetes serve.

// Kubernetes 1.x, of which the types of k8s.io/api have since when and until
// when they are served. The newest is the one that the module is of.
const (
	oldestMinor = 20
	newestMinor = 37
)

// Versions are the versions of Kubernetes that Offline knows, the newest first.
func Versions() []string {
	var all []string
	for minor := newestMinor; minor >= oldestMinor; minor-- {
		all = append(all, fmt.Sprintf("1.%d", minor))
	}
	return all
}

func minorOf(text string) (int, error) {
	if text == "" {
		return newestMinor, nil
	}
	parts := strings.SplitN(strings.TrimPrefix(text, "v"), ".", 3)
	minor := 0
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(parts[1])
	}
	if parts[0] != "1" || minor < oldestMinor || minor > newestMinor {
		return 0, fmt.Errorf("unknown version %s of Kubernetes: use 1.%d to 1.%d", text, oldestMinor, newestMinor)
	}
	return minor, nil
}

// Version is the version of Kubernetes, as Versions has it, that Offline takes a
// user's word for: the newest for "". One that is not known is given back.
func Version(text string) string {
	minor, err := minorOf(text)
	if err != nil {
		return text
	}
	return fmt.Sprintf("1.%d", minor)
}

// Knows reports whether Offline can check objects of a built-in kind and version.
func Knows(gvk schema.GroupVersionKind) bool {
	doc, err := published.Load()
	return known(gvk) != nil || err == nil && doc.Kinds[published.Key(gvk)] != ""
}

// The methods of k8s.io/api's types in zz_generated.prerelease-lifecycle.go.
type (
	introduced interface{ APILifecycleIntroduced() (major, minor int) }
	removed    interface{ APILifecycleRemoved() (major, minor int) }
	replaced   interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}
)

func schemes() []*runtime.Scheme { return []*runtime.Scheme{scheme.Scheme, crdScheme()} }

// known is a new object of a kind's Go type, or nil.
func known(gvk schema.GroupVersionKind) runtime.Object {
	for _, s := range schemes() {
		if obj, err := s.New(gvk); err == nil && isRoot(obj) {
			obj.GetObjectKind().SetGroupVersionKind(gvk)
			return obj
		}
	}
	return nil
}

// isRoot leaves out the options and lists that schemes have in addition to kinds.
func isRoot(obj runtime.Object) bool {
	t := reflect.TypeOf(obj).Elem()
	if t.Kind() != reflect.Struct {
		return false
	}
	_, ok := t.FieldByName("ObjectMeta")
	return ok
}

// goneSince is the minor version of Kubernetes that removed a kind; 0: none did. typed may be nil.
func goneSince(typed runtime.Object, gvk schema.GroupVersionKind) int {
	if typed == nil {
		return removedKinds()[gvk].minor
	}
	gone, _ := lifecycle(typed)
	return gone
}

// notServed says why a server of the version 1.minor does not serve the kind,
// and what to write instead; "" if it does, or may. typed may be nil.
func notServed(typed runtime.Object, gvk schema.GroupVersionKind, minor int) string {
	name := gvk.GroupVersion().String() + " " + gvk.Kind
	_, since := lifecycle(typed)
	gone := goneSince(typed, gvk)
	switch {
	case since > minor:
		return fmt.Sprintf("Kubernetes 1.%d does not serve %s yet, which came with 1.%d%s", minor, name, since, instead(gvk, minor))
	case gone > 0 && gone <= minor:
		write := instead(gvk, minor)
		if r, ok := typed.(replaced); ok {
			by := r.APILifecycleReplacement()
			write = fmt.Sprintf("; write %s %s", by.GroupVersion(), by.Kind)
		} else if by := removedKinds()[gvk].by; by != "" && write == "" {
			write = "; write apiVersion: " + by
		}
		return fmt.Sprintf("Kubernetes 1.%d no longer serves %s, gone since 1.%d%s", minor, name, gone, write)
	}
	return ""
}

// NotServed says why a server of a version of Kubernetes does not serve a built-in
// kind, and what to write instead; "" if it does, or if the kind is not known.
func NotServed(gvk schema.GroupVersionKind, kubernetesVersion string) (string, error) {
	minor, err := minorOf(kubernetesVersion)
	if err != nil {
		return "", err
	}
	return notServed(known(gvk), gvk, minor), nil
}

// BuiltIn says whether any version of Kubernetes has a kind itself.
func BuiltIn(gk schema.GroupKind) bool { return len(versionsOf(gk)) > 0 }

// Removed says whether a version of Kubernetes serves no version of a built-in kind any
// more, as the lists of k8s.io/api and removed.txt have it. later: it has some that it does not serve
// yet, so that after a downgrade objects may still be stored.
func Removed(gk schema.GroupKind, kubernetesVersion string) (gone, later bool, err error) {
	minor, err := minorOf(kubernetesVersion)
	if err != nil {
		return false, false, err
	}
	versions := versionsOf(gk)
	if len(versions) == 0 || slices.ContainsFunc(versions, func(gvk schema.GroupVersionKind) bool { return notServed(known(gvk), gvk, minor) == "" }) {
		return false, false, nil
	}
	later = slices.ContainsFunc(versions, func(gvk schema.GroupVersionKind) bool {
		gone := goneSince(known(gvk), gvk)
		return gone == 0 || gone > minor
	})
	return !later, later, nil
}

// typedVersions are the versions of a kind that there are Go types of.
func typedVersions(gk schema.GroupKind) (all []schema.GroupVersionKind) {
	for _, s := range schemes() {
		for _, gv := range s.VersionsForGroupKind(gk) {
			if gvk := gv.WithKind(gk.Kind); known(gvk) != nil && gv.Version != runtime.APIVersionInternal {
				all = append(all, gvk)
			}
		}
	}
	return all
}

func versionsOf(gk schema.GroupKind) []schema.GroupVersionKind {
	all := typedVersions(gk)
	for gvk := range removedKinds() {
		if gvk.GroupKind() == gk {
			all = append(all, gvk)
		}
	}
	return all
}

type removal struct {
	minor int
	by    string // the API version to write instead, or ""
}

//go:embed removed.txt
var removedText string

// removedKinds are those that only older versions served, and that k8s.io/api has no
// Go type of any more: scripts/removed-apis writes them.
var removedKinds = sync.OnceValue(func() map[schema.GroupVersionKind]removal {
	all := map[schema.GroupVersionKind]removal{}
	for line := range strings.Lines(removedText) {
		words := strings.Fields(line)
		if len(words) != 4 {
			continue // a comment
		}
		minor, _ := strconv.Atoi(words[2])
		all[schema.FromAPIVersionAndKind(words[0], words[1])] = removal{minor, strings.TrimPrefix(words[3], "-")}
	}
	return all
})

func instead(gvk schema.GroupVersionKind, minor int) string {
	if best := servedVersion(gvk.GroupKind(), minor); best != "" {
		return "; write apiVersion: " + best
	}
	return ""
}

// servedVersion is the best version of a kind that a server of 1.minor serves.
func servedVersion(gk schema.GroupKind, minor int) string {
	best := ""
	for _, gvk := range typedVersions(gk) {
		gone, since := lifecycle(known(gvk))
		served := since <= minor && (gone == 0 || gone > minor)
		if served && (best == "" || version.CompareKubeAwareVersionStrings(gvk.Version, best) > 0) {
			best = gvk.Version
		}
	}
	if best == "" {
		return ""
	}
	return schema.GroupVersion{Group: gk.Group, Version: best}.String()
}

// lifecycle is the minor version a type was removed in and came with, or 0.
func lifecycle(typed runtime.Object) (gone, since int) {
	if t, ok := typed.(removed); ok {
		_, gone = t.APILifecycleRemoved()
	}
	if t, ok := typed.(introduced); ok {
		_, since = t.APILifecycleIntroduced()
	}
	return gone, since
}

// versionWarning is the server's warning for a deprecated version, or brine's for
// one that is off by default; "" if there is none.
func versionWarning(doc *published.Document, typed runtime.Object, gvk schema.GroupVersionKind, minor int) string {
	if typed != nil && deprecation.IsDeprecated(typed, 1, minor) {
		return deprecation.WarningMessage(typed)
	}
	prerelease := strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta")
	if prerelease && minor == newestMinor && doc.Kinds[published.Key(gvk)] == "" {
		return fmt.Sprintf("the API server serves %s only with --runtime-config", gvk.GroupVersion())
	}
	return ""
}
