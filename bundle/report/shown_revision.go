package report

import (
	"brine/bundle"
	"brine/inventory"
)

// Revision is a revision as it is shown: the values of Secrets are masked.
type Revision struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Inventory  Inventory          `json:"inventory"`
	Revision   inventory.Revision `json:"revision"`
	// Namespace is that of objects that name none; Options are those of the run.
	Namespace string            `json:"namespace,omitempty"`
	Options   map[string]string `json:"options,omitempty"`
	// Rendering is what Salt rendered it from; nil where it was not Salt.
	Rendering *bundle.Rendering `json:"rendering,omitempty"`
	Objects   []RevisionObject  `json:"objects"`
	// Absent are the objects that it wants absent, Invalid what was left out of it.
	Absent  []string `json:"absent,omitempty"`
	Invalid []string `json:"invalid,omitempty"`

	// Result is the revision as a comparison that adds all of its objects.
	Result *Result `json:"-"`
}

// RevisionObject is one object of a revision.
type RevisionObject struct {
	Group     string         `json:"group"`
	Version   string         `json:"version"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Source    bundle.Source  `json:"source"`
	Content   map[string]any `json:"content"`
}
