// Package modelnames tells models apart whose modules or parameters have the same names.
//
// The two halves of a GAN may both have a module "main". The discriminator is called first:
//
//	the agent writes        tables have
//	main.0                  Discriminator.main.0
//	Generator.main.0        Generator.main.0
//
// The agent labels the names of the later model with its class. The agent could not label the first model: when that
// was called, there was no other model. In a table, "main.0" beside "Generator.main.0" would read as if one were a part
// of the other.
//
// The rules:
//
//   - The agent's label is the model's class, or the class and a number ("Net#2") if it gave the class before.
//   - A model without a label is ambiguous if a later, labelled one has a module of the same path. So is a model with
//     parameters in the root module, if a later one is labelled for such parameters.
//   - An ambiguous model gets its class as the label in tables.
//   - Ambiguous models of one class are numbered in the order of their first calls: "Net#1", "Net#2".
//   - A model that is created again, as in each trial of a search, has the label of the one before it. The agent gives
//     both the same names, so tables cannot tell them apart.
//   - A parameter of a root module ("scale") comes without its model. Such a parameter gets the label of the first
//     ambiguous model that has parameters in its root module. If no ambiguous model is known to have any, the parameter
//     gets the label of the first ambiguous model.
//   - If unlabelled models of several classes have parameters in their root modules, it is unknown from which of them
//     the agent's label tells the later model. In that case, parameters of root modules alone make no model ambiguous.
//   - The names of the script's own tags, phases and marks do not change.
package modelnames
