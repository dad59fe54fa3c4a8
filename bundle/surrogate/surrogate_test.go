package surrogate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/bundletest"
)

func id(kind, namespace, name string) bundle.ID {
	return bundle.ID{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name}
}

func TestThereAndBack(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"},"data":{"namespace":"default","self":"settings"}}`
	at := id("ConfigMap", "shop", "settings")
	for _, clash := range []bool{false, true} {
		p := New(at, "default", clash)
		if (p.Name != "settings") != clash {
			t.Errorf("clash %v: it is called %s", clash, p.Name)
		}
		body, err := p.Move([]byte(text), func(string, string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		answer, sent := bundletest.Object(t, string(body)), bundletest.Object(t, text)
		if answer.GetNamespace() != "default" || answer.GetName() != p.Name {
			t.Errorf("taken to %s/%s", answer.GetNamespace(), answer.GetName())
		}
		// What the server and its webhooks derive.
		answer.SetLabels(map[string]string{"of": p.Name, "host": p.Name + ".default.svc"})
		answer.SetOwnerReferences(nil)
		_ = unstructured.SetNestedField(answer.Object, "default", "derived", "namespace")
		_ = unstructured.SetNestedField(answer.Object, "default", "derived", "word")
		back := p.MoveBack(answer, sent, at)
		for path, want := range map[string]string{
			"metadata.name": "settings", "metadata.namespace": "shop", "data.namespace": "default", "data.self": "settings",
			"metadata.labels.of": "settings", "metadata.labels.host": "settings.shop.svc", "derived.namespace": "shop", "derived.word": "default",
		} {
			if got, _, _ := unstructured.NestedString(back.Object, strings.Split(path, ".")...); got != want {
				t.Errorf("clash %v: %s is %q, want %q", clash, path, got, want)
			}
		}
	}
}

func TestOtherNamesAreAsLongAsTheyMayBe(t *testing.T) {
	for _, name := range []string{"a", "web", strings.Repeat("n", 43), strings.Repeat("n", 52), strings.Repeat("n", 63), strings.Repeat("n", 253)} {
		other := OtherName(id("Service", "shop", name))
		if other == name || len(other) > max(len(name), 52) {
			t.Errorf("%d letters become %d", len(name), len(other))
		}
		if again := OtherName(id("Service", "shop", name)); again != other {
			t.Errorf("%s, then %s", other, again)
		}
	}
}

func TestPodsKeepTheirAccount(t *testing.T) {
	text := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","namespace":"shop"},"spec":{"serviceAccountName":"worker"}}`)
	for _, isNew := range []bool{false, true} {
		p := New(id("Pod", "shop", "one"), "shop", false)
		body, err := p.Move(text, func(namespace, name string) bool { return isNew && namespace == "shop" && name == "worker" })
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "worker") == isNew {
			t.Errorf("new %v: sent %s", isNew, body)
		}
		answer, sent := bundletest.Object(t, string(body)), bundletest.Object(t, string(text))
		account, _, _ := unstructured.NestedString(p.MoveBack(answer, sent, id("Pod", "shop", "one")).Object, "spec", "serviceAccountName")
		if account != "worker" {
			t.Errorf("new %v: it came back as %q", isNew, account)
		}
	}
}
