package bundle

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"replicas", "image", "imagePullPolicy", "name"}
	for name, want := range map[string]string{
		"replica": "replicas", "rpelicas": "replicas", "Image": "image", "imagepullpolicy": "imagePullPolicy", "nam": "name", "volumes": "", "": "", "x": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
