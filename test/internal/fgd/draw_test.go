package fgd_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/internal/fgd"
)

func asked(list []fgd.Demand, pods []int) (gpu int64) {
	for _, i := range pods {
		gpu += list[i].GPU
	}
	return gpu
}

func TestDrawShufflesAListAndAddsPods(t *testing.T) {
	list := []fgd.Demand{{GPU: 500}, {GPU: 1000}, {CPU: 1000}, {GPU: 100}}
	d := fgd.NewDraw(list, 3, 10, 42)
	first := slices.Sorted(slices.Values(d.Pods[:len(list)]))
	if diff := cmp.Diff([]int{0, 1, 2, 3}, first); diff != "" {
		t.Errorf("the first pods are not those of the list (-want +got):\n%s", diff)
	}
	if gpu := asked(list, d.Pods); gpu <= 12000 || gpu > 13000 {
		t.Errorf("the pods request %d of 10000, want as many as fit 13000", gpu)
	}
	if diff := cmp.Diff([]int{0, 1, 2}, slices.Sorted(slices.Values(d.Ranks))); diff != "" {
		t.Errorf("ranks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(d, fgd.NewDraw(list, 3, 10, 42)); diff != "" {
		t.Errorf("the same seed has another result:\n%s", diff)
	}
	if cmp.Equal(d, fgd.NewDraw(list, 3, 10, 43)) {
		t.Error("another seed has the same result")
	}
}

func TestDrawRemovesPodsThatRequestTooMuch(t *testing.T) {
	list := slices.Repeat([]fgd.Demand{{GPU: 500}}, 100)
	d := fgd.NewDraw(list, 1, 10, 42)
	if len(d.Pods) != 26 || len(slices.Compact(slices.Sorted(slices.Values(d.Pods)))) != 26 {
		t.Errorf("expected 26 different pods, got %d", d.Pods)
	}
}

// The numbers are those of Go's first generator for the seed 42, which the authors' simulator uses.
func TestDrawHasTheAuthorsRandomNumbers(t *testing.T) {
	list := slices.Repeat([]fgd.Demand{{GPU: 1000}}, 6)
	d := fgd.NewDraw(list, 5, 5, 42)
	if diff := cmp.Diff(fgd.Draw{Pods: []int{1, 2, 4, 5, 3, 0}, Ranks: []int{1, 3, 4, 2, 0}}, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAllocatedIsTheMeanAtEachPercentage(t *testing.T) {
	pods := []fgd.Demand{
		{GPU: 9950}, {CPU: 1000}, {GPU: 100}, // 99.5 % asked for, 99.5 % (rounded 100), 100.5 % (rounded 100)
		{GPU: 150}, // 102 %
		{GPU: 200}, // 104 %
	}
	got := fgd.Allocated(pods, []bool{true, true, false, false, true}, 10, 99, 104)
	// Nothing has come at 99 %. At 101 % and 103 % the value is the one before.
	want := []float64{0, 99.5, 99.5, 99.5, 99.5, 101.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = fgd.Allocated(pods[:3], []bool{true, true, true}, 10, 100, 100)
	if diff := cmp.Diff([]float64{(99.5 + 99.5 + 100.5) / 3}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
