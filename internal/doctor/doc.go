// Package doctor says whether a machine has what the sensor needs, what is lost
// without it, and what to do. It reads files only: it loads no program, and
// changes nothing.
package doctor
