package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestBandIsAroundTheLine(t *testing.T) {
	axis := Axis{To: 100, Every: 50}
	band := Line{Points: []Point{{0, 50}, {100, 50}}, Low: []float64{0, 25}, High: []float64{50, 100}}
	got := draw("", axis, axis, []Line{band, {Points: []Point{{0, 50}}}})
	if want := `<polygon points="56.0,176.0 616.0,36.0 616.0,246.0 56.0,316.0" fill="#0072b2" `; !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
	if n := strings.Count(got, "<polygon"); n != 1 {
		t.Errorf("expected one band, got %d", n)
	}
}

func TestPictureHasLinesAxesAndNames(t *testing.T) {
	got := draw("a < b", Axis{Title: "nodes", To: 100, Every: 50}, Axis{Title: "GPUs, %", From: 50, To: 100, Every: 25},
		[]Line{{Name: "first", Points: []Point{{0, 50}, {100, 100}}}, {Name: "second & third", Points: []Point{{50, 75}}}})
	for _, want := range []string{
		"<title>a &lt; b</title>", `points="56.0,316.0 616.0,36.0"`, `points="336.0,176.0"`, ">nodes<", ">GPUs, %<", ">75<",
		">first<", ">second &amp; third<",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
	}
}
