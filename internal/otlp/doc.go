// Package otlp carries the sensor's events and figures to a collector by OpenTelemetry's protocol over HTTP. It needs no rights but to look at the
// control socket.
//
// The event log is the queue: an event is passed over only once the collector has taken it, so a collector that is away loses nothing that the log
// still has, and nothing waits in memory. An event may come twice, after a failure or a kill.
package otlp
