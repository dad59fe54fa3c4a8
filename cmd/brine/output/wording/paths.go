package wording

import (
	"cmp"
	"path/filepath"
	"strings"

	"brine/bundle/report"
)

// ShortenPaths is a result whose files are named from their common folder on, and that
// folder; "" where there is none, or where the user gave short paths.
func ShortenPaths(r *report.Result) (*report.Result, string) {
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
	return report.Rewrite(r, func(t report.Text) string {
		if t.Kind == report.Field || t.Kind == report.Content {
			return t.Value // an object may hold that path, too
		}
		return strings.ReplaceAll(t.Value, prefix, "")
	}), root
}
