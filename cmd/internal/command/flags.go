package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// OutputFlag is -o, on every command that prints data. The first format is the default. pathFlag
// names the command's flag that takes a path.
func OutputFlag(pathFlag string, formats ...string) cli.Flag {
	if len(formats) == 0 {
		formats = []string{"table", "json", "yaml"}
	}
	choice := strings.Join(formats[:len(formats)-1], ", ") + " or " + formats[len(formats)-1]
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: formats[0], Usage: "output `FORMAT`: " + choice,
		Action: func(c *cli.Context, format string) error {
			if format == "yml" && slices.Contains(formats, "yaml") {
				return c.Set("output", "yaml")
			}
			if slices.Contains(formats, format) {
				return nil
			}
			hint := ""
			if pathFlag != "" {
				hint = fmt.Sprintf("write to a file with --%s %s", pathFlag, format)
			}
			return problem.Invalidf(hint, "invalid --output %q: must be %s", format, choice)
		}}
}

// Shared marks flags that several commands have: the reference describes them once. of completes
// the title "Flags …".
func Shared(of string, flags ...cli.Flag) []cli.Flag {
	for _, flag := range flags {
		switch f := flag.(type) {
		case *cli.StringFlag:
			f.Category = of
		case *cli.StringSliceFlag:
			f.Category = of
		case *cli.BoolFlag:
			f.Category = of
		case *cli.IntFlag:
			f.Category = of
		case *cli.DurationFlag:
			f.Category = of
		}
	}
	return flags
}
