package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brine/cmd/brine/output"
)

// scripts/release sets these with the linker's -X: the version it was asked
// for, the commit that was built, and that commit's time in RFC 3339.
var (
	release = "v0.3.0-dev"
	commit  string
	date    string
)

func version() string { return release }

// features are what a caller of another release may ask for: the commands, and the formats of
// a run's output. flags are those that each command takes, for a caller that passes settings
// by the environment, where an unknown name has no effect.
func features(root *cobra.Command) (features []string, flags map[string][]string) {
	flags = map[string][]string{}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			if name := strings.TrimPrefix(c.CommandPath(), root.CommandPath()+" "); c.Runnable() {
				c.Flags().VisitAll(func(f *pflag.Flag) { flags[name] = append(flags[name], f.Name) })
				if name != "help" {
					features = append(features, name)
				}
			}
			add(c)
		}
	}
	add(root)
	for _, format := range output.Formats {
		features = append(features, "output="+format)
	}
	return features, flags
}

// revision is the commit and its time: of the release, or those that the go
// command stamped; empty where neither is known.
func revision() (string, string) {
	if commit != "" {
		return commit, date
	}
	settings := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
	}
	return settings["vcs.revision"], settings["vcs.time"]
}

func newVersion(s Streams) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "version", Short: "Print brine's version and what this build can do", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			revision, date := revision()
			if format == "json" {
				features, flags := features(cmd.Root())
				return json.NewEncoder(s.Out).Encode(map[string]any{
					"apiVersion": "brine.dev/v1", "kind": "Version", "version": version(), "revision": revision, "date": date,
					"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "features": features, "flags": flags,
				})
			}
			var parts []string
			if revision != "" {
				parts = append(parts, "commit "+revision[:min(len(revision), 12)])
			}
			if date != "" {
				parts = append(parts, date)
			}
			parts = append(parts, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
			_, err := fmt.Fprintf(s.Out, "brine %s (%s)\n", version(), strings.Join(parts, ", "))
			return err
		},
	}
	outputFlag(cmd, &format, "text or json", "text", "json")
	return cmd
}
