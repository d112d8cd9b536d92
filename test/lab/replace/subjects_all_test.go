//go:build linux && cases

package replace

import "github.com/pmk-sched/pmk-sched/internal/lab"

// replaced have their default scheduler replaced.
var replaced = []string{lab.LayoutKubeadm, lab.LayoutPMK}
