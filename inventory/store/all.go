package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster"
	"brine/inventory"
)

// OpenAll reads all inventories of a namespace, or with "" of the cluster, sorted by
// namespace and name: two requests, and two for each that looks damaged. Fingerprints are
// not read. Of an inventory that cannot be decoded, Damage says why.
func OpenAll(ctx context.Context, c *cluster.Client, namespace, version string) ([]*Inventory, error) {
	var objects, parts []unstructured.Unstructured
	reading, parallel := errgroup.WithContext(ctx)
	list := func(items *[]unstructured.Unstructured, label string) {
		reading.Go(func() (err error) {
			if *items, err = c.List(parallel, cluster.ConfigMaps, namespace, label, ""); err != nil {
				return fmt.Errorf("list ConfigMaps with label %s: %w", label, err)
			}
			return nil
		})
	}
	list(&objects, inventory.Label)
	list(&parts, inventory.OverflowLabel)
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	of := map[[2]string][]unstructured.Unstructured{} // namespace and name of an inventory
	for _, u := range parts {
		if at := strings.LastIndex(u.GetName(), "-overflow-"); at > 0 {
			key := [2]string{u.GetNamespace(), u.GetName()[:at]}
			of[key] = append(of[key], u)
		}
	}
	var all []*Inventory
	open := func(namespace, name, id string, object *unstructured.Unstructured, parts []unstructured.Unstructured) {
		inv := &Inventory{Inventory: inventory.Inventory{Namespace: namespace, Name: name, ID: id}, version: version, client: c}
		err := inv.decode(object, slices.DeleteFunc(parts, func(u unstructured.Unstructured) bool { return u.GetLabels()[inventory.OverflowLabel] != id }))
		if err == nil && (object == nil || len(inv.damage) > 0) {
			err = inv.settle(ctx)
		}
		switch {
		case err != nil:
			inv.damage = append(inv.damage, err.Error())
		case inv.object == nil && len(inv.overflow)+len(inv.broken) == 0:
			return // it was destroyed meanwhile
		case inv.object == nil:
			inv.damage = append(inv.damage, "ConfigMap "+name+" is missing")
		}
		all = append(all, inv)
	}
	for i := range objects {
		u := &objects[i]
		key := [2]string{u.GetNamespace(), u.GetName()}
		open(u.GetNamespace(), u.GetName(), u.GetLabels()[inventory.Label], u, of[key])
		delete(of, key)
	}
	for key, parts := range of {
		open(key[0], key[1], parts[0].GetLabels()[inventory.OverflowLabel], nil, parts)
	}
	slices.SortFunc(all, func(a, b *Inventory) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return all, nil
}

// Tool is what wrote the inventory last, like "brine/0.2.0"; "" for tools that do
// not say.
func (inv *Inventory) Tool() string {
	if inv.object == nil {
		return ""
	}
	return inv.object.GetAnnotations()[tooling]
}
