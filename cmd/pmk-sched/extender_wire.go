package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pmk-sched/pmk-sched/internal/extenders"
)

// extendersOf are the extenders of the file that are deployed with its scheduler.
func extendersOf(c *cli.Context) ([]extenders.Options, error) {
	f, err := readCustomScheduler(c.String("file"))
	if err != nil {
		return nil, err
	}
	var list []extenders.Options
	for _, e := range f.deployedExtenders() {
		o, err := e.options(f, namespaceOf(c, f))
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}
