// Package console serves a page in the browser for people who look at containers and answer questions. It has no rights of its own: it asks the
// sensor over the control socket as whoever runs it, and serves nobody whom the sensor knows as guarded.
//
// It owns who may use the page, and how what containers chose is given to a browser: as visible text. It decides nothing, and words
// nothing that a terminal is told as well.
package console
