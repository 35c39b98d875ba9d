package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
)

// Lengths of the picture, in pixels.
const (
	rowHeight = 18
	nameWidth = 300
	plotWidth = 420
	textWidth = 240
	margin    = 16
	axisRoom  = 44 // above the rows of a panel: its title, and the numbers of its axis
)

// style is readable on a light page and on a dark one.
const style = `text{font:12px sans-serif;fill:#1f2328}.title{font-weight:bold}.axis{fill:#59636e;font-size:11px}.grid{stroke:#d1d9e0}` +
	`.wanted{stroke:#bc4c00;stroke-width:2}.is{stroke:#0969da;stroke-width:3}.dot{fill:#0969da}.bad{stroke:#cf222e}.dot.bad{fill:#cf222e}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis{fill:#9198a1}.grid{stroke:#3d444d}.wanted{stroke:#f0883e}.is{stroke:#58a6ff}` +
	`.dot{fill:#58a6ff}.bad{stroke:#ff7b72}.dot.bad{fill:#ff7b72}}`

// panel is results on one axis.
type panel struct {
	title string
	of    []result
	ticks []float64
	at    func(v float64) float64           // on the axis, from 0 to 1
	scale func(r result, v float64) float64 // a figure of r as the axis has it
}

// picture draws all results that have a target, and all ratios, with their intervals, as SVG. What was felt is no figure of the sensor's alone.
func picture(results map[string]result) []byte {
	var ratios, others []result
	for _, name := range slices.Sorted(maps.Keys(results)) {
		r := results[name]
		r.Name = name
		switch {
		case strings.HasSuffix(name, "_felt"):
		case strings.HasSuffix(name, "_ratio"):
			ratios = append(ratios, r)
		case r.Target != nil && *r.Target > 0:
			others = append(others, r)
		}
	}
	linear := func(v float64) float64 { return (v - 0.95) / (1.35 - 0.95) }
	logarithmic := func(v float64) float64 { return (math.Log10(max(v, 1e-9)) + 2) / 3 }
	panels := []panel{
		{"Cost of one operation, as a ratio to the machine without the sensor", ratios, []float64{1, 1.05, 1.1, 1.2, 1.3}, linear, func(_ result, v float64) float64 { return v }},
		{"Other figures, as a part of what is wanted", others, []float64{0.01, 0.1, 0.5, 1, 2, 5, 10}, logarithmic, share},
	}
	var b bytes.Buffer
	y := margin
	for _, p := range panels {
		y = p.draw(&b, y) + margin
	}
	width := nameWidth + plotWidth + textWidth + 2*margin
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="What Weir costs, with 95 %% intervals"><style>%[3]s</style>`+"\n%[4]s</svg>\n",
		width, y, style, b.Bytes())
}

// share is a figure as a part of what is wanted; of a rate, of which more is better, the other way round.
func share(r result, v float64) float64 {
	if r.Unit == rate {
		return *r.Target / v
	}
	return v / *r.Target
}

// draw writes the panel from y on, and gives where it ends.
func (p panel) draw(b *bytes.Buffer, y int) int {
	top, bottom := y+axisRoom, y+axisRoom+rowHeight*len(p.of)
	x := func(v float64) float64 { return margin + nameWidth + plotWidth*min(max(p.at(v), 0), 1) }
	fmt.Fprintf(b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", margin, y+14, p.title)
	for _, tick := range p.ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d"/><text class="axis" text-anchor="middle" x="%.1[1]f" y="%[4]d">%[5]g</text>`+"\n",
			x(tick), top-4, bottom, top-8, tick)
	}
	for i, r := range p.of {
		middle := top + rowHeight*i + rowHeight/2
		bad, wanted := "", ""
		if strings.Contains(strings.ToLower(r.verdict()), "not met") {
			bad = " bad"
		}
		if r.Target != nil {
			wanted = fmt.Sprintf(" (%s %g)", map[bool]string{true: "≥", false: "≤"}[r.Unit == rate], *r.Target)
			at := x(p.scale(r, *r.Target))
			fmt.Fprintf(b, `<line class="wanted" x1="%.1[1]f" y1="%[2]d" x2="%.1[1]f" y2="%[3]d"/>`, at, middle-6, middle+6)
		}
		low, high := x(p.scale(r, r.Low)), x(p.scale(r, r.High))
		fmt.Fprintf(b, `<line class="is%[1]s" x1="%.1[2]f" y1="%[3]d" x2="%.1[4]f" y2="%[3]d"/><circle class="dot%[1]s" cx="%.1[5]f" cy="%[3]d" r="4"/>`,
			bad, min(low, high), middle, max(low, high), x(p.scale(r, r.Value)))
		fmt.Fprintf(b, `<text x="%[1]d" y="%[2]d">%[3]s</text><text x="%[4]d" y="%[2]d">%[5]s</text>`+"\n", margin, middle+4, html.EscapeString(r.Name),
			margin+nameWidth+plotWidth+12, html.EscapeString(strings.TrimSuffix(fmt.Sprintf("%.4g %s", r.Value, unitOf(r.Unit)), " ratio")+wanted))
	}
	return bottom
}

func unitOf(unit string) string {
	return cmp.Or(map[string]string{"percent": "%"}[unit], unit)
}
