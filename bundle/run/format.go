package run

import (
	"fmt"

	"brine/bundle/report"
	"brine/inventory"
)

// reportFormat says that the run, or the one that is previewed, writes the inventory in
// another format than an older version did. Reading commands do not.
func (r *run) reportFormat() {
	if r.Wanted != "" || r.Planning.Destroy || !r.inv.Outdated() {
		return
	}
	who := "this run writes it"
	if r.DryRun != report.None {
		who = "an apply with this version writes it"
	}
	r.record.Warn(fmt.Sprintf("inventory %s/%s is in the format of an older version (%s wrote it): %s in format %d, even if nothing else changes. "+
		"This needs the rights to update ConfigMaps and to create and update Leases in namespace %s",
		r.inv.Namespace, r.inv.Name, r.inv.Tool(), who, inventory.Format, r.inv.Namespace))
}

// staysInOldFormat: nothing else was to be written, and the right to is missing.
func (r *run) staysInOldFormat(err error) {
	r.record.Warn(fmt.Sprintf("inventory %s/%s stays in the older format, which this version reads: %s", r.inv.Namespace, r.inv.Name, err.Error()))
}
