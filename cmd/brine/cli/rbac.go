package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/read"
	"brine/bundle/remedy"
	"brine/bundle/rights"
	"brine/bundle/sls"
	"brine/bundle/takeover"
	"brine/bundle/validate"
	"brine/cmd/brine/output/wording"
)

// rbacOptions are those of rbac.
type rbacOptions struct {
	input                       input
	inventory, role, namespace  string
	readOnly                    bool
	takeOverFrom                []string
	serviceAccount, user, group string
}

func newRBAC(s Streams) *cobra.Command {
	r := &rbacOptions{}
	cmd := &cobra.Command{
		Use: "rbac -f BUNDLE", Short: "Write the smallest roles to preview, apply and prune a bundle", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.write(cmd, s) },
	}
	f := cmd.Flags()
	r.input.flags(cmd)
	f.StringVar(&r.inventory, "inventory", "", "NAMESPACE/NAME of the inventory (default: in the namespace of --namespace)")
	f.StringVarP(&r.namespace, "namespace", "n", "default", "namespace of objects that do not set one")
	f.StringVar(&r.role, "role", "", "name of the roles (default: brine:NAMESPACE:NAME of --inventory; without that, brine)")
	f.StringSliceVar(&r.takeOverFrom, "take-over-from", nil, "Helm releases to be taken over, helm:[NAMESPACE/]RELEASE: also the rights on what Helm stores of them")
	f.BoolVar(&r.readOnly, "read-only", false, "only the rights to read: a preview then compares, without dry runs")
	f.StringVar(&r.serviceAccount, "service-account", "", "bind the roles to this ServiceAccount, NAMESPACE/NAME")
	f.StringVar(&r.user, "user", "", "bind the roles to this user")
	f.StringVar(&r.group, "group", "", "bind the roles to this group")
	cmd.MarkFlagsMutuallyExclusive("service-account", "user", "group")
	return cmd
}

func (r *rbacOptions) write(cmd *cobra.Command, s Streams) error {
	subject, err := r.subject()
	if err != nil {
		return err
	}
	b, err := r.input.read(cmd.Context(), s)
	if err != nil {
		return err
	}
	if err := read.Resolve(b, read.Resolver{Namespace: r.namespace}); err != nil {
		return err
	}
	var read []bundle.ID
	if err := sls.FillSlots(b, func(id bundle.ID) (*unstructured.Unstructured, error) {
		read = append(read, id)
		return nil, nil //nolint:nilnil // nothing is there to be read
	}); err != nil {
		return err
	}
	g, _ := order.Build(b.Objects, order.Options{})
	g.Outside(func(_ int, e order.External) { read = append(read, e.On) }) // it is waited for
	for _, gk := range rights.Unknown(b, read, validate.Knows) {
		s.warn(gk.String() + ": the name of its resource is guessed, because neither the bundle nor Kubernetes defines the kind")
	}
	namespace, name, ok := strings.Cut(r.inventory, "/")
	switch {
	case r.inventory == "":
		namespace = r.namespace
	case !ok:
		return errors.New("--inventory must be NAMESPACE/NAME")
	}
	role := cmp.Or(r.role, rights.RoleName(namespace, name, r.readOnly))
	if r.role == "" && name == "" {
		s.warn(fmt.Sprintf("the roles are called %s, as those of every bundle without an inventory: kubectl apply overwrites the ones that are there; %s or %s gives them a name of their own",
			role, remedy.Inventory, remedy.Role))
	}
	wanted := rights.Of(rights.Uses(b, read, r.readOnly), namespace, r.readOnly)
	for _, release := range takeover.Releases(takeover.Qualified(r.takeOverFrom, r.namespace)) {
		wanted = append(wanted, rights.OfRelease(release.Namespace, r.readOnly)...)
	}
	text, err := rights.Roles(wanted, role, subject, rights.NewNamespaces(b, wanted))
	if err != nil {
		return err
	}
	if wording.Clean(string(text)) != string(text) {
		return errors.New("names in the bundle contain control characters, or characters that change the direction of text: no role was written")
	}
	_, err = s.Out.Write(text)
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
