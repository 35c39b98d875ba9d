// Receiver is the outside world of a test: it listens where it is told and says on standard output, one JSON object a line, all
// that reaches it, from sockets and, with -dev, from the wire:
//
//	receiver [-dev NAME]
//
// On standard input it takes lines such as {"id":1,"op":"listen","net":"tcp","at":"[::]:7000"} and {"id":2,"op":"dial",…}, and
// answers each with {"id":…}. It fails at its end if frames came faster than it could hear them. The types of both are in package
// weir/test/vm/wire.
package main
