package output

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"brine/bundle/report"
)

// shortPaths is a result whose files are named from their common folder on, and that
// folder; "" where there is none, or where the user gave short paths.
func shortPaths(r *report.Result) (*report.Result, string) {
	root := ""
	for _, o := range r.Objects {
		dir := filepath.Dir(o.Source.File)
		if o.Source.File == "" || !filepath.IsAbs(dir) && strings.Count(dir, string(filepath.Separator)) < 2 {
			continue
		}
		root = cmp.Or(root, dir)
		for dir != root && !strings.HasPrefix(dir, root+string(filepath.Separator)) && root != filepath.Dir(root) {
			root = filepath.Dir(root)
		}
	}
	if root == "" || root == filepath.Dir(root) {
		return r, ""
	}
	prefix := root + string(filepath.Separator)
	short := func(text string) string { return strings.ReplaceAll(text, prefix, "") }
	c := *r
	c.Review = r.Review.Rewrite(short)
	for _, list := range []*[]string{&c.Errors, &c.Warnings} {
		*list = slices.Clone(*list)
		for i, text := range *list {
			(*list)[i] = short(text)
		}
	}
	c.Objects = slices.Clone(r.Objects)
	for i, o := range c.Objects {
		copied := *o
		copied.Source.File, copied.Reason, copied.Error = short(o.Source.File), short(o.Reason), short(o.Error)
		c.Objects[i] = &copied
	}
	return &c, root
}
