package command

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// Start is a command line for new users.
type Start struct{ Line, Usage string }

// StartHelp returns the text that a program without arguments prints: the command lines for new
// users, and the names of the commands in their groups.
func StartHelp(app *cli.App, start []Start) string {
	var p Printer
	p.Line("%s - %s\n\nSTART HERE:", app.Name, app.Usage)
	for _, s := range start {
		p.Row("  "+inProgram(app.Name, s.Line), s.Usage)
	}
	p.Line("\nCOMMANDS:")
	for group := app.Commands; len(group) > 0; {
		category := group[0].Category
		var names []string
		for len(group) > 0 && group[0].Category == category {
			if !group[0].Hidden {
				names = append(names, group[0].Name)
			}
			group = group[1:]
		}
		if category != "" {
			title := "  " + category
			for line := range strings.SplitSeq(wrapNames(names), "\n") {
				p.Row(title, line)
				title = " "
			}
		}
	}
	p.Line("\nRun `%s --help` for all commands and the global flags, or `%[1]s COMMAND --help`.", app.Name)
	return Aligned(p.String())
}

// namesWidth is the width of a line of commands, next to the name of their group.
const namesWidth = 84

// wrapNames returns names in lines.
func wrapNames(names []string) string {
	text, width := "", 0
	for i, name := range names {
		switch {
		case i == 0:
		case width+1+len(name) > namesWidth:
			text, width = text+"\n", 0
		default:
			text, width = text+" ", width+1
		}
		text, width = text+name, width+len(name)
	}
	return text
}
