package output

import "brine/bundle/apply"

type live struct{}

func (*live) update(apply.Event) {}
func (*live) stop()              {}
