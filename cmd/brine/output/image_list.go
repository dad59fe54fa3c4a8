package output

import (
	"bufio"
	"fmt"
	"io"

	"brine/bundle"
	"brine/bundle/images"
	"brine/cmd/brine/output/wording"
)

// imageUses is an image with all objects that name it.
type imageUses struct {
	Image string `json:"image"`
	// Guess: all that name it may mean something else.
	Guess bool       `json:"guess,omitempty"`
	Uses  []imageUse `json:"uses"`
}

type imageUse struct {
	bundle.Reference
	Path   string        `json:"path"`
	Guess  bool          `json:"guess,omitempty"`
	Source bundle.Source `json:"source"`
}

// Images lists images: those of a bundle, or where they are compared with another
// bundle's those that are new, and those that are gone.
func Images(w io.Writer, format string, uses, gone []images.Use, compared bool) error {
	if format == "json" {
		document := map[string]any{"apiVersion": "brine.dev/v1", "kind": "Images", "images": imagesByName(uses)}
		if compared {
			document["gone"] = imagesByName(gone)
		}
		return wording.JSON(w, document)
	}
	out := bufio.NewWriter(w)
	list := func(mark string, uses []images.Use) {
		for _, i := range imagesByName(uses) {
			guess := ""
			if i.Guess {
				guess = "  (a guess)"
			}
			fmt.Fprintf(out, "%s%s%s\n", mark, wording.Line(i.Image), guess)
			for _, u := range i.Uses {
				fmt.Fprintf(out, "    %s  %s  (%s)\n", wording.Line(bundle.Name(u.ID())), wording.Line(u.Path), wording.Line(u.Source.String()))
			}
		}
	}
	if compared {
		list("+ ", uses)
		list("- ", gone)
	} else {
		list("", uses)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	return nil
}

// imagesByName puts uses of one image together. They are sorted by it.
func imagesByName(uses []images.Use) []imageUses {
	all := []imageUses{}
	for _, u := range uses {
		if len(all) == 0 || all[len(all)-1].Image != u.Image {
			all = append(all, imageUses{Image: u.Image, Guess: true})
		}
		last := &all[len(all)-1]
		at := u.Object.Source
		at.Line = u.Object.Line(u.Path)
		last.Guess = last.Guess && u.Guess
		last.Uses = append(last.Uses, imageUse{bundle.ReferTo(u.Object.ID), u.Path, u.Guess, at})
	}
	return all
}
