package deploy

import (
	"slices"
	"strings"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/profiles"
)

// describeWirings lists extenders in a description.
func describeWirings(wirings []manifest.Wiring) string {
	if len(wirings) == 0 {
		return ""
	}
	var names []string
	for _, w := range wirings {
		names = append(names, w.Extender.Name)
	}
	return ", extenders " + strings.Join(names, ", ")
}

// placeSidecars gives each sidecar without a port one next to the scheduler's.
func placeSidecars(wirings []manifest.Wiring, secure int) error {
	taken := map[int32]bool{}
	for _, w := range wirings {
		if w.Sidecar != nil {
			taken[w.Sidecar.Port] = true
		}
	}
	for i := range wirings {
		if wirings[i].Sidecar == nil {
			continue
		}
		placed := *wirings[i].Sidecar
		for n := 0; placed.Port == 0; n++ {
			port, err := manifest.SidecarPort(secure, n)
			if err != nil {
				return err
			}
			if !taken[port] {
				placed.Port, taken[port] = port, true
			}
		}
		wirings[i].Sidecar, wirings[i].Extender.URLPrefix = &placed, manifest.SidecarURL(placed.Port)
	}
	return nil
}

func calls(wirings []manifest.Wiring) []profiles.Extender {
	var list []profiles.Extender
	for _, w := range wirings {
		list = append(list, w.Extender)
	}
	return list
}

// placeExtenders chooses the sidecars' ports.
func (p *planner) placeExtenders() error {
	p.plan.Scheduler.Wirings = slices.Clone(p.Wirings)
	if err := placeSidecars(p.plan.Scheduler.Wirings, p.plan.Scheduler.Port); err != nil {
		return err
	}
	for _, w := range p.plan.Scheduler.Wirings {
		where := "at " + w.Extender.URLPrefix
		if w.Sidecar != nil {
			where = "as a sidecar " + where
		}
		p.note("extender %s %s", w.Extender.Name, where)
	}
	return nil
}

// configureExtenders adds the extenders to the configuration.
func (p *planner) configureExtenders() error {
	notes, err := p.plan.configure()
	for _, n := range notes {
		p.warn("%s", n.Message)
	}
	return err
}
