package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

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
