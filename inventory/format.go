package inventory

import (
	"fmt"
	"strconv"
	"strings"
)

// Format is the number of what this version writes on the cluster: inventory object,
// overflow, origins, fingerprints and revisions. Versions read all numbers up to their own.
// It rises with a change that an earlier version could not read, and KnownSince with it. What
// versions before 0.3 wrote has no number, and is 0.
const (
	Format     = 1
	KnownSince = "v0.3.0" // the first version that reads it
)

// FormatText is what the inventory object says of its format, like "1 v0.3.0".
func FormatText() string { return fmt.Sprintf("%d %s", Format, KnownSince) }

// ParseFormat is the inverse of FormatText.
func ParseFormat(text string) (number int, since string) {
	first, since, _ := strings.Cut(text, " ")
	number, _ = strconv.Atoi(first)
	return number, since
}

// CheckFormat is an error where a later version wrote what this one cannot read.
func CheckFormat(number int, since, own string) error {
	if number <= Format {
		return nil
	}
	return fmt.Errorf("it is in format %d, which brine reads from version %s on, and this is %s, which reads up to format %d: use %s or later; nothing was changed",
		number, since, own, Format, since)
}
