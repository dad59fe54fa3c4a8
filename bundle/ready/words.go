package ready

import (
	_ "embed"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// words.txt has the words that the general rule goes by, and says what each list is for.
//
//go:embed words.txt
var wordLists string

var (
	wellEnds, illWords, underWay, lasting = words("wellEnds"), words("illWords"), words("underWay"), words("lasting")
	toItsEnd, stateEnds, elsewhere        = words("toItsEnd"), words("stateEnds"), words("elsewhere")
)

// words are those of a list.
func words(list string) sets.Set[string] {
	_, rest, _ := strings.Cut(wordLists, "\n["+list+"]\n")
	all := sets.New[string]()
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "[") {
			break
		}
		line, _, _ = strings.Cut(line, "#")
		all.Insert(strings.Fields(line)...)
	}
	return all
}
