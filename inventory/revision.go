package inventory

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
)

// secrets is known without discovery.
var secrets = cluster.Resource{
	GVR:        schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
	GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
	Namespaced: true,
}

const (
	// RevisionLabel is the number of the revision that a Secret is a part of.
	RevisionLabel = "brine.dev/revision"
	revisionInfo  = "brine.dev/revision-info" // annotation of the first part: Revision as JSON
	revisionHead  = "brine.dev/last-revision" // annotation of the head: the same, of the last one
	revisionKey   = "bundle.json.zst"
	// revisionBytes of compressed bundle go into one Secret (1 MiB is the limit).
	revisionBytes = 900 << 10
)

// Revision is a bundle that was applied.
type Revision struct {
	Number  int       `json:"number"`
	Digest  string    `json:"digest"` // of the bundle
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"`
	JobID   string    `json:"jid,omitempty"` // Salt's
	Result  string    `json:"result"`        // applied, not-ready, failed, interrupted
	Objects int       `json:"objects"`
	Parts   int       `json:"parts"`
	Version string    `json:"version"` // of brine
}

// Last is the inventory's last revision; its Number is 0 if there is none.
func (inv *Inventory) Last() Revision {
	var r Revision
	if inv.head != nil {
		_ = json.Unmarshal([]byte(inv.head.GetAnnotations()[revisionHead]), &r)
	}
	return r
}

// SaveRevision keeps the bundle as a new revision, unless it is the last one
// again with the same result; a limit of 0 saves none. The head names it with
// its next write, in Finish: so a revision that was cut short is overwritten by
// the next.
func (inv *Inventory) SaveRevision(ctx context.Context, r Revision, objects []*unstructured.Unstructured, limit int) (Revision, error) {
	last := inv.Last()
	if limit <= 0 || (last.Digest == r.Digest && last.Result == r.Result) {
		return last, nil
	}
	r.Number = last.Number + 1
	if last.Digest == r.Digest {
		r.Number = last.Number // the same bundle, which came to something else this time
	}
	text, err := json.Marshal(objects)
	if err != nil {
		return r, fmt.Errorf("save revision %d: encode the bundle: %w", r.Number, err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return r, fmt.Errorf("save revision %d: compress the bundle: %w", r.Number, err)
	}
	packed := w.EncodeAll(text, nil)
	if err := w.Close(); err != nil {
		return r, fmt.Errorf("save revision %d: compress the bundle: %w", r.Number, err)
	}
	parts := slices.Collect(slices.Chunk(packed, revisionBytes))
	r.Parts = len(parts)
	for i, part := range parts {
		if err := inv.writePart(ctx, r, i, part); err != nil {
			return r, fmt.Errorf("save revision %d: %w", r.Number, err)
		}
	}
	info, err := json.Marshal(r)
	if err != nil {
		return r, fmt.Errorf("save revision %d: %w", r.Number, err)
	}
	inv.lastRevision = string(info)
	return r, nil
}

func (inv *Inventory) partName(number, part int) string {
	return fmt.Sprintf("%s-revision-%d-%d", inv.Name, number, part)
}

func (inv *Inventory) writePart(ctx context.Context, r Revision, i int, part []byte) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"type":      "brine.dev/revision",
		"immutable": false,
		"data":      map[string]any{revisionKey: base64.StdEncoding.EncodeToString(part)},
	}}
	u.SetGroupVersionKind(secrets.GVK)
	u.SetNamespace(inv.Namespace)
	u.SetName(inv.partName(r.Number, i))
	u.SetLabels(map[string]string{Side: inv.ID, RevisionLabel: strconv.Itoa(r.Number)})
	if i == 0 {
		info, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		u.SetAnnotations(map[string]string{revisionInfo: string(info)})
	}
	body, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	// Server-side apply, because a part of a run that was cut short may be there.
	id := bundle.ID{Namespace: inv.Namespace, Name: u.GetName(), GroupKind: secrets.GVK.GroupKind()}
	if _, _, err := inv.client.Apply(ctx, secrets, id, body, cluster.Write{Force: true}); err != nil {
		return fmt.Errorf("Secret %s/%s: %w", inv.Namespace, u.GetName(), err) //nolint:staticcheck // a kind
	}
	return nil
}

// Trim deletes the revisions up to a number.
func (inv *Inventory) Trim(ctx context.Context, upTo int) error {
	if upTo <= 0 {
		return nil
	}
	items, err := inv.client.ListMetadata(ctx, secrets, inv.Namespace, Side+"="+inv.ID+","+RevisionLabel)
	if err != nil {
		return fmt.Errorf("trim the history: %w", err)
	}
	return inv.deleteRevisions(ctx, items, upTo)
}

func (inv *Inventory) deleteRevisions(ctx context.Context, items []metav1.PartialObjectMetadata, upTo int) error {
	for i := range items {
		if n, err := strconv.Atoi(items[i].Labels[RevisionLabel]); err != nil || (upTo > 0 && n > upTo) {
			continue
		}
		id := bundle.ID{Namespace: inv.Namespace, Name: items[i].Name, GroupKind: secrets.GVK.GroupKind()}
		if _, err := inv.client.Delete(ctx, secrets, id, cluster.Deletion{UID: items[i].UID}); err != nil {
			return fmt.Errorf("trim the history: delete Secret %s/%s: %w", inv.Namespace, items[i].Name, err)
		}
	}
	return nil
}

// History are the revisions that are kept, the newest first.
func (inv *Inventory) History(ctx context.Context) ([]Revision, error) {
	items, err := inv.client.ListMetadata(ctx, secrets, inv.Namespace, Side+"="+inv.ID+","+RevisionLabel)
	if err != nil {
		return nil, fmt.Errorf("read the history of inventory %s/%s: %w", inv.Namespace, inv.Name, err)
	}
	var history []Revision
	for i := range items {
		var r Revision
		if json.Unmarshal([]byte(items[i].Annotations[revisionInfo]), &r) == nil && r.Number > 0 {
			history = append(history, r)
		}
	}
	slices.SortFunc(history, func(a, b Revision) int { return b.Number - a.Number })
	return history, nil
}

// ErrNoRevision says that the history does not hold the revision that was asked for.
var ErrNoRevision = errors.New("no such revision")

// LoadRevision reads the objects of a revision, in the order of its bundle.
func (inv *Inventory) LoadRevision(ctx context.Context, number int) ([]*unstructured.Unstructured, error) {
	var packed []byte
	for i, parts := 0, 1; i < parts; i++ {
		id := bundle.ID{Namespace: inv.Namespace, Name: inv.partName(number, i), GroupKind: secrets.GVK.GroupKind()}
		u, err := inv.client.Get(ctx, secrets, id)
		if err != nil {
			return nil, fmt.Errorf("read revision %d of inventory %s/%s: %w", number, inv.Namespace, inv.Name, err)
		}
		if u == nil {
			return nil, fmt.Errorf("%w: %d of inventory %s/%s (Secret %s is not there); brine history lists them", ErrNoRevision, number, inv.Namespace, inv.Name, id.Name)
		}
		if i == 0 {
			var r Revision
			if err := json.Unmarshal([]byte(u.GetAnnotations()[revisionInfo]), &r); err != nil || r.Parts < 1 {
				return nil, fmt.Errorf("read revision %d of inventory %s/%s: Secret %s is damaged: its annotation %s", number, inv.Namespace, inv.Name, id.Name, revisionInfo)
			}
			parts = r.Parts
		}
		text, _, _ := unstructured.NestedString(u.Object, "data", revisionKey)
		part, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("read revision %d of inventory %s/%s: Secret %s is damaged: its data", number, inv.Namespace, inv.Name, id.Name)
		}
		packed = append(packed, part...)
	}
	var objects []*unstructured.Unstructured
	var contents []map[string]any
	if err := unpack(base64.StdEncoding.EncodeToString(packed), &contents); err != nil {
		return nil, fmt.Errorf("read revision %d of inventory %s/%s: %w", number, inv.Namespace, inv.Name, err)
	}
	for _, c := range contents {
		objects = append(objects, &unstructured.Unstructured{Object: c})
	}
	return objects, nil
}
