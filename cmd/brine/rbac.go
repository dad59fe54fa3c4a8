package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/read"
	"brine/bundle/report"
	"brine/bundle/rights"
	"brine/bundle/sls"
	"brine/bundle/validate"
	"brine/cmd/brine/output"
)

// rbacOptions are those of rbac.
type rbacOptions struct {
	input                       input
	inventory, role, namespace  string
	readOnly                    bool
	serviceAccount, user, group string
}

func newRBAC(s streams) *cobra.Command {
	r := &rbacOptions{}
	cmd := &cobra.Command{
		Use: "rbac -f BUNDLE", Short: "Write the least roles to preview, apply and prune a bundle", Args: cobra.NoArgs,
		Long: `Writes the least Role of each namespace, and the ClusterRole, with which a bundle
can be previewed, applied, pruned and waited for: the inventory, its lock and its
history included. No cluster is asked. Namespaces of the bundle are written too,
as no Role can be without its namespace; apply adopts them.

What an upgrade prunes is in the older bundle: grant the roles of both, under two
names (--role). Roles and bindings of the bundle itself need the verbs escalate and
bind for just these.

Before a Namespace is deleted brine looks for objects of others in it, which takes
the right to list everything in this namespace; for a CRD, to list what it defines.
The roles themselves carry the label brine.dev/rbac and go with their namespace.

In the inventory's namespace brine needs its ConfigMaps, its Lease (the lock) and
Secrets (the revisions). Each right that is missing is an error that names it, but:
without watch objects are polled; without pods, events, replicasets and pods/log a
line says what could not be read of an object that is not ready; without patch or
create of Secrets a warning says that no revision is kept; get, create and patch of
Namespaces are for an inventory whose namespace is not there yet, and get for saved
plans (--plan-out).

--read-only writes what a preview needs that asks the server about nothing: a dry
run takes the same rights as the real thing. Such a preview reads and compares, says
"not verified" of all that would change, and lists the rights that are missing to
apply. It keeps a Namespace or CRD of which it cannot see what it holds.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.write(cmd, s) },
	}
	f := cmd.Flags()
	r.input.flags(cmd)
	f.StringVar(&r.inventory, "inventory", "", "NAMESPACE/NAME of the inventory (default: in the namespace of --namespace)")
	f.StringVarP(&r.namespace, "namespace", "n", "default", "namespace of namespaced objects that name none")
	f.StringVar(&r.role, "role", "brine", "name of the roles")
	f.BoolVar(&r.readOnly, "read-only", false, "only what a preview needs that does not ask the server")
	f.StringVar(&r.serviceAccount, "service-account", "", "bind the roles to this ServiceAccount, NAMESPACE/NAME")
	f.StringVar(&r.user, "user", "", "bind the roles to this user")
	f.StringVar(&r.group, "group", "", "bind the roles to this group")
	cmd.MarkFlagsMutuallyExclusive("service-account", "user", "group")
	return cmd
}

func (r *rbacOptions) write(cmd *cobra.Command, s streams) error {
	subject, err := r.subject()
	if err != nil {
		return &coded{report.ExitBadBundle, err}
	}
	b, err := r.input.read(cmd.Context(), s)
	if err != nil {
		return &coded{report.ExitBadBundle, err}
	}
	if err := read.Resolve(b, read.Resolver{Namespace: r.namespace}); err != nil {
		return &coded{report.ExitBadBundle, err}
	}
	var read []bundle.ID
	if err := sls.FillSlots(b, func(id bundle.ID) (*unstructured.Unstructured, error) {
		read = append(read, id)
		return nil, nil //nolint:nilnil // nothing is there to be read
	}); err != nil {
		return &coded{report.ExitBadBundle, err}
	}
	for _, gk := range rights.Unknown(b, validate.Knows) {
		s.warn(gk.String() + ": the name of its resource is guessed, as neither the bundle nor Kubernetes defines it")
	}
	namespace := r.namespace
	if at, _, ok := strings.Cut(r.inventory, "/"); ok {
		namespace = at
	} else if r.inventory != "" {
		return &coded{report.ExitBadBundle, errors.New("--inventory is NAMESPACE/NAME")}
	}
	wanted := rights.Of(rights.Uses(b, read, r.readOnly), namespace, r.readOnly)
	text, err := rights.Roles(wanted, r.role, subject, fresh(b, wanted))
	if err != nil {
		return err
	}
	if output.Clean(string(text)) != string(text) {
		return &coded{report.ExitBadBundle, errors.New("names in the bundle hold control characters, or marks of the direction of text: no role was written")}
	}
	_, err = s.out.Write(text)
	return err
}

func (r *rbacOptions) subject() (*rbacv1.Subject, error) {
	switch {
	case r.serviceAccount != "":
		return rights.ServiceAccount(r.serviceAccount)
	case r.user != "":
		return rights.User(r.user), nil
	case r.group != "":
		return rights.Group(r.group), nil
	}
	return nil, nil //nolint:nilnil // no binding is wanted
}

// fresh are the namespaces of the bundle that a Role is to be in.
func fresh(b *bundle.Bundle, wanted []rights.Right) []string {
	var names []string
	for _, o := range b.Objects {
		in := func(w rights.Right) bool { return w.Namespace == o.ID.Name }
		if o.ID.GroupKind == bundle.NamespaceKind && slices.ContainsFunc(wanted, in) {
			names = append(names, o.ID.Name)
		}
	}
	slices.Sort(names)
	return names
}
