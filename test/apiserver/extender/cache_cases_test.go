//go:build linux && cases

package extender_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAnOutageOfTheAPIServerLeavesWhatIsKnown(t *testing.T) {
	c := newScene(t, "outage")
	c.node("outage-a")
	running, _ := c.serve(newRoom)
	c.must(server.StopAPI())
	if got := c.filtered(running, "outage-a"); got != "[outage-a] map[]" {
		t.Errorf("while the API server is away: %s", got)
	}
	c.must(server.StartAPI(c.ctx))
	c.node("outage-b")
	c.until("the cache knows what happened afterwards",
		func() bool { return c.filtered(running, "outage-b") == "[outage-b] map[]" })
}

// The watch breaks, a pod is created again under its name (as by a StatefulSet), and the events in
// between are lost in the API server and in etcd, so that the extender lists again: it sees another
// pod and no deletion.
func TestAPodThatWasCreatedAgainDuringAGapOfTheWatchCountsOnce(t *testing.T) {
	c := newScene(t, "again")
	c.node("again-a")
	c.pod("web-0", "again-a")
	line := &line{}
	_, handle := c.serveOver(line, newRoom)
	line.cut()
	lists := line.listed()
	c.gone("web-0")
	second := c.pod("web-0", "again-a")
	c.must(server.Compact(c.ctx))
	c.must(server.StopAPI()) // because it keeps the events in memory
	c.must(server.StartAPI(c.ctx))
	line.restore()
	counted := func() (uids []types.UID) {
		n, err := handle.Cache().Get("again-a")
		c.must(err)
		for i := range n.PodCount() {
			uids = append(uids, n.Pod(i).UID)
		}
		return uids
	}
	c.until("the cache knows the second pod", func() bool { return slices.Contains(counted(), second.UID) })
	if line.listed() == lists {
		t.Error("the extender has seen the deletion: it has not listed pods again")
	}
	if got := counted(); len(got) != 1 {
		t.Errorf("%d pods count on the node, of 1", len(got))
	}
}
