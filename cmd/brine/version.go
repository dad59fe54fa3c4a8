package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is brine's version; builds of other commits say so by their revision.
const release = "v0.1.0"

func version() string { return release }

// features are what a caller of another release may ask for.
var features = []string{"apply", "preview", "destroy", "status", "check", "history", "rollback", "output=json", "output=events", "output=salt", "output=salt-cmd", "output=salt-events"}

func newVersion(s streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print brine's version and what this build can do", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					if setting.Key == "vcs.revision" {
						revision = setting.Value
					}
				}
			}
			if format == "json" {
				return json.NewEncoder(s.out).Encode(map[string]any{
					"apiVersion": "brine.dev/v1", "kind": "Version", "version": version(), "revision": revision,
					"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "features": features,
				})
			}
			_, err := fmt.Fprintf(s.out, "brine %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return cmd
}
