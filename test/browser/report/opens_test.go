//go:build linux && browser

package report

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/browser"
)

// BenchmarkReportOpens opens the report of a large cluster: 5,000 nodes with 25,000 pods, all of
// them in the tables of placements and differences. It measures the time from the navigation until
// the first text is shown, and until everything is loaded.
func BenchmarkReportOpens(b *testing.B) {
	file := write(b, simulated(5_000, 5))
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	chromium := browser.Start(b)
	var painted, loaded float64
	for b.Loop() {
		p := chromium.Open(b, file, browser.View{Width: 1280, Height: 800})
		times := p.Eval(b, `JSON.stringify([performance.getEntriesByName("first-contentful-paint")[0].startTime,
			performance.getEntriesByType("navigation")[0].loadEventEnd])`)
		var milliseconds [2]float64
		if err := json.Unmarshal([]byte(times.(string)), &milliseconds); err != nil {
			b.Fatalf("read times %v: %v", times, err)
		}
		painted, loaded = painted+milliseconds[0], loaded+milliseconds[1]
		if rows := p.Eval(b, `document.body.innerText.includes("training-0")`); rows != true {
			b.Error("the page does not have the pod without a node")
		}
	}
	b.ReportMetric(painted/float64(b.N), "painted-ms")
	b.ReportMetric(loaded/float64(b.N), "loaded-ms")
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}
