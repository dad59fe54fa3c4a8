package inventory

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
)

// How says in which way an object became a member.
type How int

// The ways. Of a member of unknown origin, which is all that an older version or another
// tool made, what undoes a run deletes nothing.
const (
	Unknown   How = iota
	Created       // by brine
	Adopted       // it was there, and belonged to no tool that was told to let go of it
	TakenOver     // it was there, and belonged to another tool: From
	Moved         // from another inventory: From
)

// Origin is how a member came to be one. It holds for one UID: an object that somebody
// creates under the same name has none. It is no cache: nothing else tells a member
// that brine created from one that was there before.
type Origin struct {
	UID uint64 `json:"u,omitempty"` // a hash of the object's; see hashOf
	How How    `json:"h,omitempty"`
	// Run is the number of the revision that the run was to save; 0 where no run did it.
	Run int `json:"r,omitempty"`
	// From is of what was TakenOver the tool, like helm:shop/web, and of what was Moved
	// the inventory: NAMESPACE/NAME, or its ID where that is all that is known.
	From string `json:"f,omitempty"`
	// FromUID is of what was Moved a hash of Source.UID; 0 where that is not known.
	FromUID uint64 `json:"i,omitempty"`
	// Earlier is of what was Moved its origin in From; nil if that is unknown.
	Earlier *Origin `json:"e,omitempty"`
	// Was is Earlier.How. It is all that some versions wrote of it, and read.
	Was How `json:"w,omitempty"`
	// BroughtFrom is where a command of brine inventory got it from, as long as no run has
	// applied it since: an inventory, or FromNone. A bundle that contains nothing that came
	// from there is older than that, and does not prune it. ToGiveBack: a rollback undid the
	// run that got it.
	BroughtFrom string `json:"c,omitempty"`
}

// FromNone is where a member came from that was in no inventory.
const FromNone = "adopted"

// ToGiveBack is BroughtFrom of what a rollback gives back to the inventory From, until it has.
const ToGiveBack = "to-give-back"

// String is a clause about the member, like "brine created it in run 3".
func (o Origin) String() string {
	in := ""
	if o.Run > 0 {
		in = fmt.Sprintf(" in run %d", o.Run)
	}
	switch o.How {
	case Created:
		return "brine created it" + in
	case Adopted:
		return "it was there before brine adopted it" + in
	case TakenOver:
		return fmt.Sprintf("it was there before brine took it over from %s%s", o.From, in)
	case Moved:
		return fmt.Sprintf("it came from inventory %s%s", o.From, in)
	}
	return "it is not known who created it"
}

// Home is From as an argument: what is known by its ID only has to be found.
func (o Origin) Home() string {
	if !strings.Contains(o.From, "/") {
		return "NAMESPACE/NAME"
	}
	return o.From
}

// Before says whether the object was there before it became a member.
func (o Origin) Before() bool { return o.How == Adopted || o.How == TakenOver || o.How == Moved }

// Of binds an origin to an object.
func (o Origin) Of(uid types.UID) Origin {
	o.UID = hashOf(uid)
	return o
}

// Equal says whether two records say the same.
func (o Origin) Equal(other Origin) bool {
	a, b := o.Earlier, other.Earlier
	o.Earlier, other.Earlier = nil, nil
	return o == other && (a == nil) == (b == nil) && (a == nil || a.Equal(*b))
}

// Source is an inventory that members come from, or go to.
type Source struct {
	Name string // NAMESPACE/NAME
	ID   string
	// UID is that of the inventory object, and after a rename still of the first one: a
	// later inventory of the same name is another one. It is "" if there is none yet.
	UID types.UID
}

// IsFrom says whether the member was moved from an inventory. A record without FromUID
// knows it by its name.
func (o Origin) IsFrom(s Source) bool {
	switch {
	case o.How != Moved:
		return false
	case o.FromUID != 0:
		return s.UID != "" && o.FromUID == hashOf(s.UID)
	}
	return o.From == s.Name || o.From == s.ID
}

// WithSource names the inventory that the member was moved from.
func (o Origin) WithSource(s Source) Origin {
	o.From, o.FromUID = s.Name, hashOf(s.UID)
	return o
}

// mostEarlier bounds the records that one has before it. What is older is unknown.
const mostEarlier = 8

// MovedTo is the origin in the inventory to of a member that is moved there from
// the inventory from. One that returns to where it was before is what it was there.
func (o Origin) MovedTo(to, from Source) Origin {
	for at := &o; at != nil; at = at.Earlier {
		if at.IsFrom(to) {
			back := at.earlier()
			back.UID = o.UID
			return back
		}
	}
	moved := Origin{UID: o.UID, How: Moved, Was: o.How, Earlier: o.upTo(mostEarlier)}
	return moved.WithSource(from)
}

// earlier is the origin in From of what was Moved.
func (o Origin) earlier() Origin {
	switch {
	case o.Earlier != nil:
		return *o.Earlier
	case o.Was == Moved: // it is not known from where
		return Origin{}
	}
	return Origin{How: o.Was}
}

// upTo is a copy of the record and of those before it, n in all, for the record of a move.
func (o Origin) upTo(n int) *Origin {
	if o.How == Unknown || n == 0 {
		return nil
	}
	o.UID, o.BroughtFrom = 0, ""
	if o.Earlier != nil {
		o.Earlier = o.Earlier.upTo(n - 1)
	}
	return &o
}

func hashOf(uid types.UID) uint64 {
	sum := sha256.Sum256([]byte(uid))
	return binary.BigEndian.Uint64(sum[:])
}

// OriginOf is the origin of a live object; How is Unknown unless it is of this very
// object. A member that a killed run was to create, and that is there as its own, it
// created: whatever was there before is recorded before the first write.
func (inv *Inventory) OriginOf(id bundle.ID, live *unstructured.Unstructured) Origin {
	if o := inv.Origins[id]; o.How != Unknown && o.UID == hashOf(live.GetUID()) {
		return o
	}
	if run := inv.Members[id].Creating; run > 0 && live.GetAnnotations()[OwningInventory] == inv.ID {
		return Origin{How: Created, Run: run}.Of(live.GetUID())
	}
	return Origin{}
}

// LastRun is the highest number of a run that brought a member.
func (inv *Inventory) LastRun() int {
	last := 0
	for _, o := range inv.Origins {
		last = max(last, o.Run)
	}
	return last
}

// SettleOrigins returns the origins after a run that applied what came from some inventories: its bundle
// decides about all that came from there, also if it did not get so far as to prune. What is gone
// has none.
func SettleOrigins(all map[bundle.ID]Origin, from sets.Set[string], gone []bundle.ID) map[bundle.ID]Origin {
	for id, o := range all {
		if from.Has(o.BroughtFrom) {
			o.BroughtFrom = ""
			all[id] = o
		}
	}
	for _, id := range gone {
		delete(all, id)
	}
	return all
}

type originRecord struct {
	record
	Origin
}

// originBytes of a member without its names.
const originBytes = 60

// EncodeOrigins packs origins, for one ConfigMap each; see packChunks.
func EncodeOrigins(origins map[bundle.ID]Origin, stored []string) ([]string, error) {
	return packChunks(origins, stored, originBytes, func(r record, o Origin) any { return originRecord{r, o} }, DecodeOrigins)
}

// DecodeOrigins reads one ConfigMap's. What cannot be read is unknown.
func DecodeOrigins(packed string) map[bundle.ID]Origin {
	return unpackChunk(packed, func(r originRecord) (bundle.ID, Origin) { return r.id(), r.Origin })
}
