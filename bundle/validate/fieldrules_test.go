package validate

import (
	"reflect"
	"testing"
)

// A rule about a field that its struct does not have would never be asked.
func TestFieldRulesAreOfFields(t *testing.T) {
	for of, rules := range fieldRules {
		names := map[string]bool{"": true}
		for _, f := range reflect.VisibleFields(of) {
			names[jsonName(f)] = true
		}
		for name := range rules {
			if !names[name] {
				t.Errorf("%s has no field %s", of, name)
			}
		}
	}
}
